"""Rows that a web service is asked for again and again."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, ClassVar

from esault.connectors.http.incoming import Incoming, answer_refused, tls_trouble
from esault.connectors.http.incoming_spout import IncomingSpout
from esault.connectors.http.library import library
from esault.connectors.http.retries import PASSING, retry_after
from esault.connectors.http.service import Service
from esault.errors import SourceError, TopologyError
from esault.topology.arguments import check_seconds
from esault.topology.context import Context

__all__ = ["HttpPollSource"]


class HttpPollSource(IncomingSpout[Any]):
    """Rows of the JSON that a web service answers, asked every `every` seconds; needs `esault[http]`.

    `rows` is the path to the list of rows, such as "data.items"; "" where the answer is the list, or one row. `key` is a field of a row,
    or a function of it.
    `since=("updated_after", "updated_at")` asks for new rows alone: the greatest value of the field "updated_at" that has come is
    sent as the parameter "updated_after", and a row that has come is left out. Without `since` an answer that has changed gives all its
    rows. The service is sent the ETag and the Last-Modified of its last answer, and may say 304.

    While the service is away or busy (408, 425, 429, 5xx, no answer within `timeout` seconds) it waits, as long as Retry-After
    says, and says so once. Another answer than 2xx ends the run. `once=True`: the stream ends behind the first answer.
    """

    seekable = False
    takes_ahead = True
    delivery_guarantee: ClassVar[str] = (
        "with checkpoints each row counts once, as far as the service still gives what came while nothing ran"
    )

    def __init__(
        self,
        url: str,
        *,
        every: float = 60.0,
        rows: str = "",
        key: str | Callable[[Any], Any] | None = None,
        since: tuple[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        timeout: float = 30.0,
        once: bool = False,
    ) -> None:
        who = "HttpPollSource"
        super().__init__(Service("HttpPollSource", url, "https://example.org/orders", headers, token))
        if since is not None and (not isinstance(since, (tuple, list)) or len(since) != 2):
            raise TopologyError(f"{who}: since={since!r}: write (parameter, field of a row)")
        if params is not None and not isinstance(params, Mapping):
            raise TopologyError(f'{who}: params={params!r}: write a dict, such as {{"status": "open"}}')
        if not isinstance(rows, str):
            raise TopologyError(f'{who}: rows={rows!r}: write a path with dots, such as "data.items", or ""')
        if key is not None and not callable(key) and not isinstance(key, str):
            raise TopologyError(f"{who}: key={key!r}: write a field's name, a function of a row, or None")
        self._every, self._timeout = check_seconds(who, "every", every), check_seconds(who, "timeout", timeout)
        self._path = [step for step in rows.split(".") if step]
        self._key, self._since, self._once = key, since, once
        self._params = dict(params or {})
        self._has_answered = False
        #: what the last answer was known by, and how many of its rows have been given; the greatest `since` and rows that had it
        self._known: dict[str, Any] = {
            "etag": None,
            "modified": None,
            "answer": "",
            "given": 0,
            "since": None,
            "seen": [],
        }

    def open(self, context: Context) -> None:
        """Nothing yet: the first read asks."""
        library("HttpPollSource", SourceError)
        self.context = context
        self._incoming = Incoming(self._who, context.logger.warning, self._known)

    def position(self) -> dict[str, Any]:
        """Return what is known of the last answer, and how much of it has been given."""
        return self._known if self._incoming is None else self._incoming.position

    def commit(self, position: Any) -> None:
        """Right behind `open`: go on behind what an earlier process has read."""
        if not self._started and position is not None and self._incoming is not None:
            self._known = self._incoming.position = position

    def caught_up(self) -> bool:
        """Return whether the rows of the first answer have been read."""
        return self._has_answered and not self.lag()

    # in the thread of the client -------------------------------------------------------------------

    async def _fill(self, incoming: Incoming) -> None:
        aiohttp = library("HttpPollSource", SourceError)
        limit = aiohttp.ClientTimeout(total=self._timeout)
        async with aiohttp.ClientSession(timeout=limit, headers=self._service.headers) as session:
            while True:
                try:
                    async with session.get(
                        self._service.url, params=self._asked(), headers=self._conditions()
                    ) as answer:
                        body = await answer.read()
                except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
                    await incoming.pause(tls_trouble(self._who, error))
                    continue
                except (aiohttp.ClientError, asyncio.TimeoutError) as error:
                    await incoming.pause(str(error) or f"no answer within {self._timeout:g} s")
                    continue
                if answer.status >= 500 or answer.status in PASSING:
                    trouble = f"it says {answer.status} {answer.reason}"
                    await incoming.pause(trouble, retry_after(answer.headers.get("Retry-After")))
                    continue
                if answer.status != 304:
                    if answer.status // 100 != 2:
                        raise answer_refused(self._who, answer.status, answer.reason, body.decode(errors="replace"))
                    await incoming.put(self._new(body, answer.headers))
                incoming.answered()
                self._has_answered = True
                if self._once:
                    return
                await asyncio.sleep(self._every)

    def _asked(self) -> dict[str, str]:
        since = (
            {} if self._since is None or self._known["since"] is None else {self._since[0]: str(self._known["since"])}
        )
        return {**self._params, **since}

    def _conditions(self) -> dict[str, str]:
        found = {"If-None-Match": self._known["etag"], "If-Modified-Since": self._known["modified"]}
        return {name: value for name, value in found.items() if value is not None}

    def _new(self, body: bytes, headers: Mapping[str, str]) -> list[tuple[tuple[Any, Any], Any]]:
        """Return the rows that have not come yet, each with what is known behind it."""
        digest = hashlib.blake2b(body, digest_size=12).hexdigest()
        rows = self._rows(body)
        # where it is gone on within an answer, the conditions are still those of the one before
        begin = self._known["given"] if digest == self._known["answer"] else 0
        found: list[tuple[tuple[Any, Any], Any]] = []
        if self._since is None:
            if not rows:
                self._known = {**self._known, "answer": digest, "given": 0}
            for number, row in enumerate(rows[begin:], begin + 1):
                self._known = {**self._known, "answer": digest, "given": number}
                found.append((self._pair(row), self._known))
        else:
            for value, row in self._ordered(rows):
                name = hashlib.blake2b(json.dumps(row, sort_keys=True).encode(), digest_size=12).hexdigest()
                known, seen = self._known["since"], self._known["seen"]
                if value == known and name in seen:
                    continue
                self._known = {**self._known, "since": value, "seen": [*seen, name] if value == known else [name]}
                found.append((self._pair(row), self._known))
        self._known = {**self._known, "etag": headers.get("ETag"), "modified": headers.get("Last-Modified")}
        if found:
            found[-1] = (found[-1][0], self._known)
        return found

    def _ordered(self, rows: list[Any]) -> list[tuple[Any, Any]]:
        """Return the rows that are no older than those that have come, each behind what says when it is of."""
        known = self._known["since"]
        try:
            found = sorted([(self._since_of(row), row) for row in rows], key=itemgetter(0))
            return [each for each in found if known is None or not each[0] < known]
        except TypeError as error:
            assert self._since is not None
            raise SourceError(
                f"{self._who}: the values of {self._since[1]!r} have no order ({error}); correct since="
            ) from None

    def _rows(self, body: bytes) -> list[Any]:
        try:
            found = json.loads(body)
            for step in self._path:
                found = found[step]
        except (ValueError, KeyError, TypeError) as error:
            path = ".".join(self._path)
            raise SourceError(
                f"{self._who}: the answer has no rows at {path!r} ({type(error).__name__}: {error}); correct rows="
            ) from None
        return found if isinstance(found, list) else [found]

    def _pair(self, row: Any) -> tuple[Any, Any]:
        if callable(self._key):
            try:
                return self._key(row), row
            except Exception as error:
                raise SourceError(
                    f"{self._who}: key raises {type(error).__name__}: {error} for {str(row)[:200]}; correct key="
                ) from error
        return (None if self._key is None else self._field(row, self._key)), row

    def _since_of(self, row: Any) -> Any:
        assert self._since is not None
        return self._field(row, self._since[1])

    def _field(self, row: Any, name: str) -> Any:
        try:
            return row[name]
        except (KeyError, TypeError):
            raise SourceError(
                f"{self._who}: a row has no field {name!r}: {str(row)[:200]}; correct key= or since="
            ) from None
