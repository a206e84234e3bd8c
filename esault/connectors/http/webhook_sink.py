"""Rows POSTed to a web service."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from esault.connectors.http.library import library
from esault.connectors.http.retries import PASSING, retry_after
from esault.connectors.http.service import Service
from esault.errors import SinkError, TopologyError
from esault.sinks.durable import unwritable
from esault.sinks.json_row import encode_row, encode_value
from esault.topology.arguments import check_seconds
from esault.topology.context import Context
from esault.topology.sink import Row, Sink

__all__ = ["WebhookSink"]

#: seconds until the first repeat at most, and between two of them at most
_FIRST_BACKOFF, _LONGEST_BACKOFF = 0.5, 30.0
#: characters of an answer that are told
_TOLD = 200


class WebhookSink(Sink):
    """POSTs rows to a URL, one request for each, or for up to `batch` of them as a JSON list; needs `esault[http]`.

    `body` makes what is sent from (key, value): what JSON can say, or bytes; None: the value. Each request has a header
    Idempotency-Key. It follows from the names of its rows: a row that comes again after a crash has the same one, so that the service
    can drop it. Batches may be cut in another way then: take `batch=1` where that matters. Rows of a key are sent in order, one
    after another; `concurrency` requests are under way at once.

    Where the service does not answer within `timeout` seconds, or says 408, 425, 429 or 5xx, the request is repeated, after a pause that
    grows from 0.5 s to 30 s and is drawn at random, or as Retry-After says. That is said once. When one request is taken the others come
    again at once. Meanwhile the sink is full and pushes
    back. After `retry_for` seconds it fails; None: never. Any other answer than 2xx is a refusal: it ends the run, or with
    `dead_letters`, a path, is written there as a JSON line, with the status and the row. `ca` is a PEM file of authorities to trust.
    """

    wants_id: ClassVar[bool] = True
    delivery_guarantee: ClassVar[str] = (
        "at least once; repeats have the same Idempotency-Key, by which a service drops them"
    )
    extra: ClassVar[str] = "http"

    def __init__(
        self,
        url: str,
        *,
        body: Callable[[Any, Any], Any] | None = None,
        batch: int = 1,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        concurrency: int = 8,
        timeout: float = 30.0,
        retry_for: float | None = 300.0,
        dead_letters: str | os.PathLike[str] | None = None,
        ca: str | None = None,
    ) -> None:
        who = "WebhookSink"
        self._service = Service(who, url, "https://example.org/hook", headers, token)
        if body is not None and not callable(body):
            raise TopologyError(f"{who}: body={body!r}: write a function of key and value")
        for name, number in (("batch", batch), ("concurrency", concurrency)):
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise TopologyError(f"{who}: {name}={number!r}: write a number of at least 1")
        self.url = url
        self._body, self._batch, self._concurrency = body, batch, concurrency
        self._timeout = check_seconds(who, "timeout", timeout)
        self._retry_for = None if retry_for is None else check_seconds(who, "retry_for", retry_for)
        self._dead_letters = None if dead_letters is None else os.fspath(dead_letters)
        self._ca = ca
        self._session: Any = None
        self._aiohttp: Any = None
        self._away = False
        #: pauses that end when a request is taken: the service is back
        self._pausing: set[asyncio.Event] = set()

    def check(self) -> None:
        """Raises SinkError where aiohttp is missing, the host has no address, or refused rows cannot be kept. Nothing is sent."""
        self._service.check(SinkError)
        self._trusted()
        if self._dead_letters is not None:
            folder = os.path.dirname(os.path.abspath(self._dead_letters))
            if (
                not os.path.isdir(folder)
                or os.path.isdir(self._dead_letters)
                or not os.access(folder, os.W_OK | os.X_OK)
            ):
                raise SinkError(
                    f"WebhookSink: dead_letters={self._dead_letters!r}: no file can be made there; name one in a folder that is there and "
                    "can be written"
                )

    def written_paths(self) -> Sequence[str]:
        """Return the file of refused rows."""
        return () if self._dead_letters is None else (self._dead_letters,)

    def destination(self) -> str:
        """Return where rows go, for people."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"  # what else there is may be secret

    def open(self, context: Context) -> None:
        """Nothing yet: the first row connects."""
        self.context = context
        self._aiohttp = library("WebhookSink", SinkError)
        self._session, self._away = None, False
        self._pausing = set()

    async def write(self, rows: Sequence[Row]) -> None:
        """Send them; done when each has been taken or refused."""
        if self._session is None:
            self._session = self._begun()
        queues: list[list[Row]] = [[] for _ in range(self._concurrency)]
        for row in rows:
            queues[hash(repr(row.key)) % len(queues)].append(row)
        sending = [asyncio.ensure_future(self._send_all(queue)) for queue in queues if queue]
        try:
            for each in asyncio.as_completed(sending):
                await each
        finally:
            for task in sending:
                task.cancel()
            await asyncio.gather(*sending, return_exceptions=True)

    async def close(self) -> None:
        """Let go of connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _trusted(self) -> Any:
        if self._ca is None:
            return None
        import ssl

        try:
            return ssl.create_default_context(cafile=self._ca)
        except (OSError, ssl.SSLError) as error:
            raise SinkError(
                f"WebhookSink: ca={self._ca!r} cannot be read ({error.strerror or error}); give a PEM file"
            ) from None

    def _begun(self) -> Any:
        trusted = self._trusted()
        of = {} if trusted is None else {"ssl": trusted}
        return self._aiohttp.ClientSession(
            connector=self._aiohttp.TCPConnector(limit=self._concurrency, **of),
            timeout=self._aiohttp.ClientTimeout(total=self._timeout),
            headers=self._service.headers,
        )

    async def _send_all(self, rows: list[Row]) -> None:
        for begin in range(0, len(rows), self._batch):
            await self._send(rows[begin : begin + self._batch])

    async def _send(self, rows: list[Row]) -> None:
        data, kind = self._made(rows)
        headers = {"Content-Type": kind, "Idempotency-Key": self._key(rows)}
        tries, began, woken = 0, time.monotonic(), False
        while True:
            tries += 1
            asked: float | None = None
            try:
                async with self._session.post(self.url, data=data, headers=headers, allow_redirects=False) as answer:
                    if answer.status // 100 == 2:
                        await answer.read()
                        self._answered()
                        return
                    said = (await answer.text(errors="replace"))[:_TOLD]
                    trouble = f"it says {answer.status} {answer.reason}" + (f": {said}" if said.strip() else "")
                    if answer.status < 500 and answer.status not in PASSING:
                        self._refused(rows, answer.status, said, trouble)
                        return
                    asked = retry_after(answer.headers.get("Retry-After"))
            except (self._aiohttp.ClientConnectorCertificateError, self._aiohttp.ClientConnectorSSLError) as error:
                raise SinkError(
                    f"{self._service.who}: TLS is refused: {error}; give the authority's PEM file, ca=, or correct the host"
                ) from None
            except (self._aiohttp.ClientError, asyncio.TimeoutError) as error:
                trouble = str(error) or f"no answer within {self._timeout:g} s"
            woken = await self._pause(tries, began, asked, trouble, not woken)

    async def _pause(self, tries: int, began: float, asked: float | None, trouble: str, wakes: bool) -> bool:
        """Wait until the next try is due, or with `wakes` until another request is taken, and return whether one was.

        Raises SinkError where there is no next try.
        """
        left = float("inf") if self._retry_for is None else began + self._retry_for - time.monotonic()
        if left <= 0:
            failed = SinkError(
                f"{self._service.who}: not taken within {self._retry_for:g} s: {trouble}; see that the service runs, or wait longer: "
                "retry_for="
            )
            raise failed from ConnectionError(trouble)
        if tries > 1 and not self._away:  # the first time may be a connection that was closed for being idle
            self._away = True
            self.context.logger.warning("%s: %s: trying again until it is taken", self._service.who, trouble)
        pause = random.uniform(0, min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** min(tries - 1, 10)))
        if asked is not None:
            pause += asked
        pause = min(pause, left)
        # One that was woken in vain is not woken the next time: a row that is never taken would be sent as often as others are.
        if asked is not None or not wakes:
            await asyncio.sleep(pause)
            return False
        taken = asyncio.Event()
        self._pausing.add(taken)
        try:
            await asyncio.wait_for(taken.wait(), pause)
        except asyncio.TimeoutError:
            return False
        finally:
            self._pausing.discard(taken)
        return True

    def _answered(self) -> None:
        for taken in self._pausing:
            taken.set()
        if self._away:
            self._away = False
            self.context.logger.warning("%s: rows are taken again", self._service.who)

    def _refused(self, rows: list[Row], status: int, said: str, trouble: str) -> None:
        if self._dead_letters is None:
            raise SinkError(
                f"{self._service.who}: {trouble}; correct url, token or body, or have such rows kept: dead_letters="
            )
        lines = [
            encode_row({"status": status, "answer": said, "id": row.id, "key": row.key, "value": row.value})
            for row in rows
        ]
        self._keep(lines)

    def _keep(self, lines: list[bytes]) -> None:
        """Add lines to the file of refused rows; durable. Raises SinkError."""
        assert self._dead_letters is not None
        try:
            with open(self._dead_letters, "ab") as kept:
                kept.write(b"".join(lines))
                kept.flush()
                os.fsync(kept.fileno())
        except OSError as error:
            raise unwritable(self._dead_letters, error) from error

    def _made(self, rows: list[Row]) -> tuple[bytes, str]:
        """Return what is sent for these rows, and its content type."""
        values = [row.value if self._body is None else self._body(row.key, row.value) for row in rows]
        if self._batch == 1:
            value = values[0]
            return (
                (value, "application/octet-stream")
                if isinstance(value, bytes)
                else (encode_value(value), "application/json")
            )
        if any(isinstance(value, bytes) for value in values):
            raise SinkError("WebhookSink: bytes do not fit in a JSON list: write batch=1, or a body that JSON can say")
        return b"[" + b",".join(map(encode_value, values)) + b"]", "application/json"

    def _key(self, rows: list[Row]) -> str:
        """Return a name for these rows: the same when they come again in any run over the state folder."""
        named = "\n".join([self.context.lineage, self.context.unit, *(row.id or "" for row in rows)])
        return hashlib.blake2b(named.encode(), digest_size=16).hexdigest()
