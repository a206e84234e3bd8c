"""The reader of one stream of RabbitMQ: where it begins and ends, its messages as tuples, and those that were removed unread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any, NamedTuple

from esault.background import in_background
from esault.connectors.rabbitmq.client import ask
from esault.connectors.rabbitmq.link import Link
from esault.errors import EsaultError, SourceError
from esault.sources.deserializers import told_bad
from esault.topology.split_source import SplitReader
from esault.topology.spout import EndOfStream

__all__ = ["OFFSET", "Reading", "StreamMessages"]

#: the argument that says where to begin, and the header that says where a message stands
OFFSET = "x-stream-offset"
#: seconds within which a stream that has messages gives the first one, and then another
_FIRST_WITHIN, _NEXT_WITHIN = 3.0, 0.25
#: seconds after which no more are waited for, where they come without end
_LONGEST = 3.0
#: a gap between two messages that is looked at: smaller ones are what the server itself writes into a stream
_GAP = 1000


class Reading(NamedTuple):
    """Options of reading messages."""

    deserialize: Callable[[bytes], Any]
    key: Callable[[Any, Any], Any] | None
    prefetch: int
    metadata: bool
    #: messages that the deserializer refuses are counted
    passes_bad: bool
    #: messages that were removed unread end the run
    fails: bool


class _Place(NamedTuple):
    """A position: the offset to go on at, the last one to read, and how often the stream was made anew."""

    next: int
    end: int | None
    anew: int


class StreamMessages(SplitReader[Any, Any]):
    """Messages of one stream in its order, over a connection of its own. `say` takes lines for the user."""

    def __init__(
        self,
        url: str,
        stream: str,
        position: Any,
        start: str | int | float,
        ends: bool,
        reading: Reading,
        say: Callable[[str], None],
    ) -> None:
        self._url, self._stream, self._reading, self._say = url, stream, reading, say
        self._who = f"RabbitMQStreamSource, stream {stream!r}"
        self._bad = self._removed = 0
        self._ids: list[str] = []
        place = _Place(*position) if position else _Place(self._begun(start), None, 0)
        if not ends:
            place = place._replace(end=None)
        elif place.end is None:
            place = place._replace(end=self._last())
        self._place = self._checked(place) if position else place
        #: whether the next message is the first of a consumer: a gap before it is looked at
        self._first = True
        self._lock = threading.Lock()
        #: offset, method, properties, body: filled by the connection's thread
        self._waiting: deque[tuple[int, Any, Any, bytes]] = deque()
        self._error: EsaultError | None = None
        self._channel: Any = None
        self._come = self._place.next - 1
        #: the last offset that was there when it was first asked whether all has been read, and the look for it
        self._goal: int | None = None
        self._looking: Future[int] | None = None
        self._link = Link(self._who, url, SourceError, say, ready=self._ready, lost=self._lost, failed=self._failed)
        self._link.start()

    # where it begins and ends: over connections of their own ---------------------------------------

    def _offsets(self, where: Any, most: int | None = None) -> list[int]:
        """Return the offsets of the messages that come at once from there on, `most` at most."""
        found: list[int] = []

        def question(channel: Any) -> None:
            channel.basic_qos(prefetch_count=most or 10_000)
            began = time.monotonic()
            while len(found) != most and time.monotonic() - began < _LONGEST + _FIRST_WITHIN:
                within = _NEXT_WITHIN if found else _FIRST_WITHIN
                taken = channel.consume(self._stream, arguments={OFFSET: where}, inactivity_timeout=within)
                method, properties, _ = next(taken)
                if method is None:
                    break
                found.append(_offset(properties))
                channel.basic_ack(method.delivery_tag)
            with suppress(Exception):  # pika gives back what it holds, which a stream does not take
                channel.connection.close()

        ask(self._who, SourceError, self._url, question)
        return found

    def _begun(self, start: str | int | float) -> int:
        if start == "first":
            return 0
        if isinstance(start, int):
            return start
        if start == "next":
            return self._last() + 1
        where = start if start == "last" else datetime.fromtimestamp(float(start), timezone.utc)
        found = self._offsets(where, 1)
        return found[0] if found else self._last() + 1

    def _last(self) -> int:
        return max(self._offsets("last"), default=-1)

    def _checked(self, place: _Place) -> _Place:
        """Return where to go on. One that was made anew has fewer messages than were read."""
        if not place.next or self._last() >= place.next - 1:
            return place
        last = self._last()
        self._tell(
            f"it ends at offset {last}, and is read up to {place.next - 1}: it was made anew, and is read from its first message on"
        )
        return _Place(0, None if place.end is None else last, place.anew + 1)

    # messages: the data loop -----------------------------------------------------------------------

    def read(self, limit: int) -> list[tuple[Any, Any]]:
        self._ids = []
        place = self._place
        if place.end is not None and place.next > place.end:
            raise EndOfStream
        with self._lock:
            if self._error is not None and not self._waiting:
                raise self._error
            taken = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
            channel = self._channel
        rows: list[tuple[Any, Any]] = []
        ids: list[str] = []
        for offset, method, properties, body in taken:
            if offset > self._place.next and (self._first or offset - self._place.next >= _GAP):
                self._gap(self._place.next, offset)
            self._first = False
            self._place = self._place._replace(next=offset + 1)
            if place.end is not None and offset > place.end:
                break
            try:
                rows.append(self._row(offset, method, properties, body))
            except Exception as wrong:
                self._refused(offset, wrong)
            else:
                ids.append(f"{self._place.anew}-{offset}")
        if taken and channel is not None:
            tag = taken[-1][1].delivery_tag
            self._link.call(lambda: self._acknowledge(channel, tag))
        self._ids = ids
        return rows

    def _row(self, offset: int, method: Any, properties: Any, body: bytes) -> tuple[Any, Any]:
        reading = self._reading
        value = reading.deserialize(body)
        key = method.routing_key if reading.key is None else reading.key(value, properties)
        if reading.metadata:
            value = {
                "value": value,
                "headers": {name: each for name, each in (properties.headers or {}).items() if name != OFFSET},
                "message_id": properties.message_id,
                "timestamp": properties.timestamp,
                "routing_key": method.routing_key,
                "exchange": method.exchange,
                "offset": offset,
                "stream": self._stream,
            }
        return key, value

    def _refused(self, offset: int, wrong: Exception) -> None:
        if not self._reading.passes_bad:
            raise SourceError(
                f"{self._who}, offset {offset}: {type(wrong).__name__}: {wrong}; take another deserializer, or leave such messages out with "
                'on_bad_message="skip"'
            ) from wrong
        self._bad += 1
        if self._bad == 1:
            self._say(told_bad(f"{self._who}, offset {offset}", wrong))

    def _gap(self, wanted: int, come: int) -> None:
        """Say which messages were removed unread. The server also writes marks of its own into a stream: those are no loss."""
        first = min(self._offsets("first", 1), default=come) if wanted else 0  # 0 is the first that there is
        if first <= wanted:
            return
        self._removed += min(first, come) - wanted
        self._tell(
            f"messages of offsets {wanted} to {min(first, come) - 1} were removed before they were read (x-max-age, x-max-length-bytes): they are "
            "lost here; keep more of them, or read faster"
        )

    def _tell(self, text: str) -> None:
        if self._reading.fails:
            raise SourceError(f'{self._who}: {text}. To go on without them: on_removed="warn" and --resume')
        self._say(f"{self._who}: {text}")

    # the thread of the connection -------------------------------------------------------------------

    def _ready(self, channel: Any) -> None:
        with self._lock:
            self._channel = channel
        channel.add_on_cancel_callback(self._cancelled)
        channel.basic_qos(prefetch_count=self._reading.prefetch)
        channel.basic_consume(self._stream, self._arrived, arguments={OFFSET: self._come + 1})

    def _arrived(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        offset = _offset(properties)
        with self._lock:
            if channel is self._channel and offset > self._come:
                self._come = offset
                self._waiting.append((offset, method, properties, body))

    def _acknowledge(self, channel: Any, tag: int) -> None:
        if channel.is_open:
            channel.basic_ack(tag, multiple=True)

    def _lost(self) -> None:
        with self._lock:  # what has come and waits is given again, so that all that is acknowledged is of one channel
            if self._waiting:
                self._come = self._waiting[0][0] - 1
                self._waiting.clear()
            self._channel, self._first = None, True

    def _failed(self, error: EsaultError) -> None:
        with self._lock:
            self._error = error

    def _cancelled(self, frame: Any) -> None:
        self._failed(SourceError(f"{self._who} was deleted while it was read; make it anew, and run again"))

    # the rest ---------------------------------------------------------------------------------------

    def position(self) -> tuple[int, int | None, int]:
        return self._place.next, self._place.end, self._place.anew

    def row_ids(self) -> list[str]:
        return self._ids

    def caught_up(self) -> bool:
        if self._goal is None:
            self._looking = self._looking or in_background(self._last)  # a look takes a quarter of a second, or three
            if not self._looking.done():
                return False
            looking, self._looking = self._looking, None
            try:
                self._goal = looking.result()
            except SourceError as error:
                if not isinstance(error.__cause__, ConnectionError):
                    raise
                return False  # the server is away: that is said where it is read
        return self._place.next > self._goal

    def counters(self) -> dict[str, int]:
        bad = {"bad_messages_skipped": self._bad} if self._reading.passes_bad else {}
        return {**bad, "offsets_removed_unread": self._removed} if self._removed else bad

    def close(self) -> None:
        self._link.close()


def _offset(properties: Any) -> int:
    return int((properties.headers or {})[OFFSET])
