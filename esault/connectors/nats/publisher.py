"""Messages that a stream must acknowledge: in order, and after a broken connection those that it has not stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from esault.connectors.nats.client import Client
from esault.connectors.nats.consumer import Consumer
from esault.connectors.waits import Waits
from esault.errors import SinkError

__all__ = ["ID", "Base", "Message", "Publisher", "refuse_large", "takes"]

#: subject, data, identity, other headers
Message = tuple[str, bytes, str, "dict[str, str] | None"]
#: when a stream was made, and a sequence of it that all messages of a handle come behind
Base = tuple[str, int]

#: the header by which a stream knows what it has stored, and the one by which no other takes a message
ID = "Nats-Msg-Id"
_EXPECTED = "Nats-Expected-Stream"
#: bytes of the headers beside names and values: the first line and the end, and of each header
_AROUND, _AROUND_EACH = len(b"NATS/1.0\r\n\r\n"), len(b": \r\n")
#: messages that wait for their acknowledgement at most, and to be published before no more rows are taken
_WINDOW, _FULL = 2_000, 5_000
#: seconds without an answer after which a connection is given up
_SILENT = 10.0
#: seconds after which messages that the stream did not take are given to it again
_GIVE_AGAIN = 0.5
#: error codes of JetStream with which a stream refuses what it may take later: it or its server is full
_FULL_NOW = {10023, 10028, 10047, 10077}
#: and those where no waiting helps -> what to do
_REMEDIES = {
    10054: "raise max_msg_size of the stream, or write smaller values",
    10060: "the subject belongs to another stream: correct subject or stream",
}


def takes(subjects: Sequence[str], subject: str) -> bool:
    """Return whether a stream of these subjects, which may have wildcards, stores what is published to `subject`."""
    parts = subject.split(".")
    for each in subjects:
        wanted = each.split(".")
        if wanted[-1] == ">":
            wanted = [*wanted[:-1], *["*"] * max(1, len(parts) - len(wanted) + 1)]
        if len(wanted) == len(parts) and all(want in ("*", part) for want, part in zip(wanted, parts)):
            return True
    return False


def refuse_large(who: str, stream: str, messages: Sequence[Message], most: int) -> None:
    """Raise SinkError for a message of more bytes than the server takes: it would end each connection. The client counts no headers."""
    for subject, data, id, others in messages:
        headers = _headers(stream, id, others)
        size = (
            _AROUND + len(data) + sum(len(name) + len(text.encode()) + _AROUND_EACH for name, text in headers.items())
        )
        if size > most:
            raise SinkError(
                f"{who}: a message of {size:,} bytes, headers among them, for {subject[:80]!r} is too large: the server takes {most:,}; write "
                "smaller values, or raise max_payload in the server's configuration"
            )


def _headers(stream: str, id: str, others: Mapping[str, str] | None) -> dict[str, str]:
    return {ID: id, _EXPECTED: stream, **(others or {})}


class Publisher:
    """Publishes to one stream over the connection of `client`; one handle behind another."""

    def __init__(self, client: Client, who: str, stream: str) -> None:
        self._client, self._who, self._stream = client, who, stream
        self._base: Base | None = None
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._rooms: list[Future[None]] = []
        self._said_full = self._said_gone = False

    def room(self) -> Future[None] | None:
        """Return what is done when more rows may be given; None: now."""
        if self._waiting < _FULL:
            return None
        self._rooms.append(Future())
        return self._rooms[-1]

    async def base(self) -> Base:
        """Return what all that is published from now on comes behind; waits for a server that is away."""
        missing, waits = 0, Waits()
        while self._base is None:
            try:
                found = await self._client.stream(self._stream)
            except Exception as error:
                missing = self._client.away(error, missing)
                await asyncio.sleep(waits.next())
            else:
                self._base = found.created, found.last
        return self._base

    def expect(self, number: int) -> None:
        """Say that so many messages are going to be published: rows are not taken while they are too many."""
        self._waiting += number

    async def publish(self, base: Base, messages: Sequence[Message], look: bool) -> None:
        """Have the stream store these messages, each once. `look`: some may be there, behind `base`. Raises SinkError."""
        try:
            async with self._turn:
                await self._until_stored(base, messages, look)
        finally:
            self._waiting -= len(messages)
            rooms, self._rooms = self._rooms, []
            for room in rooms:
                with suppress(Exception):  # given up
                    room.set_result(None)

    async def _until_stored(self, base: Base, messages: Sequence[Message], look: bool) -> None:
        missing, left, waits = 0, list(messages), Waits()
        while left:
            try:
                if look:
                    stored = await self._stored(base)
                    left = [message for message in left if message[2] not in stored]
                await self._send(left)
                self._said_full = False
                return
            except Exception as error:
                missing = self._client.away(error, missing)
                await asyncio.sleep(waits.next())
                look = True

    async def _stored(self, base: Base) -> set[str]:
        """Return the identities that the stream has behind `base`."""
        client, (created, last) = self._client, base
        found = await client.stream(self._stream)
        client.back()
        if found.created != created:  # made anew
            self._base = None
            return set()
        if found.last <= last:
            return set()
        if found.first > last + 1 and not self._said_gone:
            self._said_gone = True
            client.say(
                f"{self._who}: the stream has removed messages that came since the checkpoint (limits, purge, or they were consumed): those of "
                "the checkpoint that were among them are published again, unless they are within its duplicate_window"
            )
        ids: set[str] = set()
        consumer = Consumer(
            client, self._stream, None, created, max(found.first, last + 1), found.last, headers_only=True
        )
        try:
            while True:
                over = consumer.settled >= found.last
                while consumer.waiting:
                    _, message, _ = consumer.waiting.popleft()
                    ids.add((message.headers or {}).get(ID, ""))
                    consumer.taken(message)
                consumer.more()
                if consumer.error is not None:
                    raise consumer.error
                if over or consumer.anew is not None:
                    return ids
                await asyncio.sleep(0.002)
        finally:
            await consumer.stop()

    # one connection ------------------------------------------------------------------------------

    async def _send(self, messages: Sequence[Message]) -> None:
        """Publish messages and wait until the stream has acknowledged all. Raises what nats-py raises, and SinkError."""
        connection = await self._client.connected()
        sent = _Sent(self._who)
        inbox = connection.new_inbox()
        subscription = await connection.subscribe(f"{inbox}.*", cb=sent.answered)
        self._client.lost.add(sent.lost)
        self._client.refused.add(sent.refuse)
        try:
            self._client.back()
            left = list(messages)
            while left:
                done = 0
                for number, (subject, data, id, others) in enumerate(left):
                    await sent.until(_WINDOW)
                    if sent.refused:
                        break
                    headers = _headers(self._stream, id, others)
                    sent.open[number] = subject
                    await connection.publish(subject, data, f"{inbox}.{number}", headers)
                    done = number + 1
                await sent.until(1)
                if sent.last and self._base is not None:
                    self._base = self._base[0], max(self._base[1], sent.last)
                again = sorted(sent.refused)
                if again:
                    await self._wait_for_room(sent.refused[again[0]])
                left = [left[number] for number in again] + left[done:]
                sent.refused = {}
        finally:
            self._client.lost.discard(sent.lost)
            self._client.refused.discard(sent.refuse)
            if not connection.is_closed:
                await subscription.unsubscribe()

    async def _wait_for_room(self, refused: tuple[str, str]) -> None:
        subject, why = refused
        if not why:  # no stream has taken it
            found = await self._client.stream(self._stream)
            if not takes(found.config.get("subjects") or (), subject):
                raise SinkError(
                    f"{self._who}: subject {subject!r} is none of the stream, which has {', '.join(found.config.get('subjects') or ()) or 'none'}; "
                    "correct it, or add it to the stream"
                )
        if not self._said_full:
            self._said_full = True
            self._client.say(
                f"{self._who}: the stream takes no messages ({why or 'no answer'}): they are given to it again until it does"
            )
        await asyncio.sleep(_GIVE_AGAIN)


class _Sent:
    """Messages that were published over one connection, and the answers to them."""

    def __init__(self, who: str) -> None:
        self._who = who
        #: number -> subject, of those without an answer
        self.open: dict[int, str] = {}
        #: number -> (subject, reason; "" where no stream has answered)
        self.refused: dict[int, tuple[str, str]] = {}
        #: the last sequence that was given to one
        self.last = 0
        self._error: Exception | None = None
        self._change = asyncio.Event()

    def lost(self, error: Exception) -> None:
        self._error = self._error or error
        self._change.set()

    def refuse(self, error: Exception) -> None:
        """Hear what the server refuses: a message that the user may not publish has no other answer."""
        if "publish" in str(error).lower():
            self.lost(error)

    async def until(self, fewer: int) -> None:
        """Wait until so few are open."""
        while self._error is None and len(self.open) >= fewer:
            before = len(self.open)
            self._change.clear()
            try:
                await asyncio.wait_for(self._change.wait(), _SILENT)
            except asyncio.TimeoutError:
                if len(self.open) == before:
                    raise ConnectionError(f"no acknowledgement for {_SILENT:.0f} s") from None
        if self._error is not None:
            raise self._error

    async def answered(self, message: Any) -> None:
        subject = self.open.pop(number := int(message.subject.rpartition(".")[2]), None)
        if subject is not None:
            if message.headers and message.headers.get("Status") == "503":
                self.refused[number] = subject, ""
            else:
                answer = json.loads(message.data)
                self.last = max(self.last, answer.get("seq", 0))
                if "error" in answer:
                    self._refuse(number, subject, answer["error"])
        self._change.set()

    def _refuse(self, number: int, subject: str, error: Any) -> None:
        code, text = error.get("err_code"), error.get("description", "")
        if code in _FULL_NOW or error.get("code") == 503:
            self.refused[number] = subject, text
        else:
            remedy = _REMEDIES.get(code)
            self._error = SinkError(f"{self._who}: subject {subject!r}: {text}" + (f"; {remedy}" if remedy else ""))
