"""An ephemeral consumer that gives a stream from a sequence on, made anew where it is lost."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from esault.connectors.nats.client import Client, Stream
from esault.connectors.waits import Waits
from esault.errors import EsaultError

__all__ = ["Consumer", "create", "forget"]

#: messages and bytes of one request to the server, and those that wait to be read before it is asked for more
_BATCH, _BYTES = 2_000, 8 << 20
_FULL = 4_000
#: seconds of a request, between two signs of life of the server, and after which their absence means that it is gone
_EXPIRES, _HEARTBEAT, _SILENT = 30.0, 5.0, 16.0
#: seconds between two looks how many messages are there
_LOOK_EVERY = 2.0
_NANO = 1_000_000_000


class _Lost(Exception):
    """A consumer is gone, or has left something out."""


async def create(client: Client, stream: str, subject: str | None, **config: Any) -> Any:
    """Make a consumer that is of memory and needs no acknowledgement, and return what the server says of it."""
    if subject is not None:
        config["filter_subject"] = subject
    config.update(ack_policy="none", replay_policy="instant", mem_storage=True, num_replicas=1)
    config["inactive_threshold"] = int(2 * _EXPIRES * _NANO)
    return await client.request(f"CONSUMER.CREATE.{stream}", stream_name=stream, config=config)


async def forget(client: Client, stream: str, consumer: str) -> None:
    """Delete a consumer; where that cannot be now, it goes by itself."""
    with suppress(Exception):
        await client.request(f"CONSUMER.DELETE.{stream}.{consumer}")


class Consumer:
    """Messages of a stream, in its order, each once. Begun in the data loop's thread; all but that runs in the loop of `client`.

    The place is known here, not in the server: whatever is lost on the way, another consumer begins where the messages that have come end.
    """

    def __init__(
        self,
        client: Client,
        stream: str,
        subject: str | None,
        created: str,
        next: int,
        end: int | None,
        headers_only: bool = False,
    ) -> None:
        self._client, self._stream, self._subject = client, stream, subject
        #: sequence, message, and its time in nanoseconds: filled in the loop, taken by the data loop
        self.waiting: deque[tuple[int, Any, int]] = deque()
        #: raised once nothing waits
        self.error: EsaultError | None = None
        #: the stream has nothing up to there but what waits
        self.settled = 0
        #: messages that the server has and has not given
        self.pending: int | None = None
        #: it is not the stream that it was; nothing comes until `begin`
        self.anew: Stream | None = None
        #: (first sequence there is, number): messages of all subjects that were removed, maybe some of this one
        self.unsure: deque[tuple[int, int]] = deque()
        self._created, self._come, self._end = created, next - 1, end
        self._config: dict[str, Any] = {"headers_only": True} if headers_only else {}
        self._number = 0
        self._asked = 0
        self._large = False
        self._bytes_in = self._bytes_out = 0
        self._consumer = ""
        self._broken: Exception | None = None
        self._heard = 0.0
        self._wake = asyncio.Event()
        self._hungry = False
        self._task: asyncio.Task[Any] | None = None
        self._stopped = False
        self._waits = Waits()
        client.submit(self._follow())

    # the data loop -------------------------------------------------------------------------------

    def taken(self, message: Any) -> None:
        """Say that it does not wait any more."""
        self._bytes_out += len(message.data)

    def more(self) -> None:
        """Say that there may be room."""
        if self._hungry and len(self.waiting) <= _FULL // 2:
            self._hungry = False
            self._client.submit(self._woken())

    def begin(self, created: str, next: int, end: int | None) -> None:
        """Go on with the stream that is there now."""
        self._created, self._come, self._end = created, next - 1, end
        self.settled, self.anew = 0, None
        self._client.submit(self._woken())

    def close(self) -> None:
        """End it."""
        self._client.submit(self.stop()).result()

    # the loop ------------------------------------------------------------------------------------

    async def _woken(self) -> None:
        self._wake.set()

    async def stop(self) -> None:
        """End it; in the loop."""
        # Up to Python 3.11 `wait_for` forgets that it was cancelled where what it waits for comes in the same turn.
        self._stopped = True
        self._break(_Lost())
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=2.0)

    async def _follow(self) -> None:
        self._task = asyncio.current_task()
        missing = 0
        while not self._stopped:
            try:
                await self._consume()
            except _Lost:
                pass  # it was there, and there is a connection: so it is made anew at once
            except Exception as error:
                try:
                    missing = self._client.away(error, missing)
                except EsaultError as fatal:
                    self.error = fatal
                    return
                await asyncio.sleep(self._waits.next())

    async def _consume(self) -> None:
        """Give what a consumer gives, until it is lost."""
        client, loop = self._client, asyncio.get_running_loop()
        connection = await client.connected()
        found = await client.stream(self._stream)
        if self.anew is None and (found.created != self._created or found.last < self._come):
            self.anew = found
        if self.anew is not None:  # `read` says so, and goes on
            self._wake.clear()
            while self.anew is not None:
                await self._wake.wait()
                self._wake.clear()
        self._look(found.first)
        self._config.update(deliver_policy="by_start_sequence", opt_start_seq=self._come + 1)
        made = await create(client, self._stream, self._subject, **self._config)
        self._consumer, self.pending = made["name"], made["num_pending"]
        self._number = self._asked = 0
        self._broken, self._large = None, False
        inbox = connection.new_inbox()
        subscription = await connection.subscribe(inbox, cb=self._came)

        def lost(_: Exception) -> None:
            self._broken = self._broken or ConnectionError("the connection is lost")
            self._wake.set()

        client.lost.add(lost)
        client.back()
        self._waits.begin_again()
        looked = self._heard = loop.time()
        try:
            while self._broken is None:
                self._wake.clear()
                self._hungry = not self._asked  # before it looks: what is read behind this wakes it
                if self._hungry and len(self.waiting) < _FULL and self._bytes_in - self._bytes_out < _BYTES:
                    self._hungry = False
                    await self._request(connection, inbox)
                    self._heard = loop.time()
                try:
                    await asyncio.wait_for(self._wake.wait(), _LOOK_EVERY)
                except asyncio.TimeoutError:
                    pass
                now = loop.time()
                if self._asked and now - self._heard > _SILENT:
                    raise ConnectionError(f"no sign of life for {_SILENT:.0f} s")
                if now - looked > _LOOK_EVERY and self._broken is None:
                    await self._count()
                    looked = loop.time()
            raise self._broken
        finally:
            client.lost.discard(lost)
            consumer, self._consumer = self._consumer, ""
            if not connection.is_closed:
                await subscription.unsubscribe()
                await forget(client, self._stream, consumer)

    async def _request(self, connection: Any, inbox: str) -> None:
        if self._large:  # one that is larger than all that is asked for at a time
            self._asked, wanted = 1, {"batch": 1}
        else:
            self._asked, wanted = _BATCH, {"batch": _BATCH, "max_bytes": _BYTES}
        if self._end is not None:
            wanted["no_wait"] = True
        else:
            wanted.update(expires=int(_EXPIRES * _NANO), idle_heartbeat=int(_HEARTBEAT * _NANO))
        self._large = False
        where = f"{self._client.api}.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
        await connection.publish(where, json.dumps(wanted).encode(), inbox)

    async def _came(self, message: Any) -> None:
        self._heard = asyncio.get_running_loop().time()
        parts = message.reply.split(".")
        if len(parts) < 9:
            self._status(message.headers or {})
            return
        # $JS.ACK.[domain.account.]stream.consumer.delivered.sequence.number.time.pending[.more]
        at = 2 if len(parts) == 9 else 4
        if parts[at + 1] != self._consumer or self._broken is not None:
            return
        sequence, number = int(parts[at + 3]), int(parts[at + 4])
        self._number += 1
        if number != self._number:
            self._break(_Lost())
            return
        self._come, self.pending = sequence, int(parts[at + 6])
        self._bytes_in += len(message.data)
        end = self._end
        if end is None or sequence <= end:
            self.waiting.append((sequence, message, int(parts[at + 5])))
        if end is not None and sequence >= end:
            self.settled = end
        self._asked -= 1
        if not self._asked:
            self._wake.set()

    def _status(self, headers: Mapping[str, str]) -> None:
        code, text = headers.get("Status"), headers.get("Description", "")
        if code == "100":
            return
        if code == "404" and self._end is not None:
            self.settled = self._end
        if code == "409" and "MaxBytes" in text:
            self._large = self._asked == _BATCH
        elif code not in ("404", "408"):
            self._break(_Lost())
        self._asked = 0
        if code != "404":
            self._wake.set()

    def _break(self, error: Exception) -> None:
        self._broken = error
        self._wake.set()

    async def _count(self) -> None:
        """Look how many messages are there, and of a subject up to where there is none."""
        found = await self._client.stream(self._stream)
        try:
            consumer = await self._client.request(f"CONSUMER.INFO.{self._stream}.{self._consumer}")
        except Exception as error:
            raise (_Lost() if getattr(error, "code", None) == 404 else error) from None
        self.pending = consumer["num_pending"]
        if consumer["delivered"]["consumer_seq"] > self._number:
            return  # some are on their way
        self._look(found.first)
        if not self.pending and self._end is None:
            # In this order: when the consumer had no more, the stream had at least what it had before.
            self.settled = self._come = max(found.last, self._come)

    def _look(self, first: int) -> None:
        if self._subject is not None and first > self._come + 1:
            self.unsure.append((first, first - self._come - 1))
            self._come = first - 1
