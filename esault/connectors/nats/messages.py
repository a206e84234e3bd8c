"""The reader of a stream, or of one subject of it: where it begins, its messages as tuples, and those that were removed unread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from esault.connectors.nats.client import Client, Stream
from esault.connectors.nats.consumer import Consumer, create, forget
from esault.errors import SourceError
from esault.sources.deserializers import told_bad
from esault.topology.split_source import SplitReader
from esault.topology.spout import EndOfStream

__all__ = ["Begin", "Messages", "Reading"]

_NANO = 1_000_000_000


class Begin(NamedTuple):
    """The place where a split is begun for the first time."""

    #: "first", "new", or a sequence
    start: str | int
    #: the time of the first message, as RFC 3339; it goes before `start`
    time: str | None
    #: it ends where the stream ends then
    ends: bool


class Reading(NamedTuple):
    """Options of reading messages."""

    deserialize: Callable[[bytes], Any]
    #: the header that is the tuple's key; None: the subject is
    key: str | None
    metadata: bool
    #: messages that the deserializer refuses are counted
    passes_bad: bool
    #: messages that were removed unread end the run
    fails: bool


class _Place(NamedTuple):
    """A position. Up to `begun` the stream had messages when it was read first, and `deleted` of those were gone that have not been passed."""

    next: int
    end: int | None
    created: str
    begun: int
    deleted: int


class Messages(SplitReader[Any, Any]):
    """Messages of one stream in its order, or those of a subject. `client` is that of all readers."""

    def __init__(
        self, client: Client, stream: str, subject: str | None, position: Any, begin: Begin, reading: Reading
    ) -> None:
        self._client, self._stream, self._subject, self._reading = client, stream, subject, reading
        self._who = f"{client.who}, stream {stream!r}" + (f", subject {subject!r}" if subject else "")
        self._bad = self._removed = self._unsure = self._told = 0
        self._place = _Place(*position) if position else client.ask(lambda _: self._begun(begin))
        if not begin.ends:
            self._place = self._place._replace(end=None)
        elif self._place.end is None:  # the run before it had no end
            self._place = self._place._replace(end=client.ask(lambda _: client.stream(stream)).last)
        self._id = self._named()
        self._ids: list[str] = []
        self._consumer = Consumer(client, stream, subject, self._place.created, self._place.next, self._place.end)

    # where it begins -----------------------------------------------------------------------------

    async def _begun(self, begin: Begin) -> _Place:
        found = await self._client.stream(self._stream)
        if begin.time is not None:
            made = await create(
                self._client, self._stream, self._subject, deliver_policy="by_start_time", opt_start_time=begin.time
            )
            await forget(self._client, self._stream, made["name"])
            start = made["delivered"]["stream_seq"] + 1
        elif begin.start == "first":
            start = found.first
        elif begin.start == "new":
            start = found.last + 1
        else:
            start = int(begin.start)
            if start > found.last + 1:
                raise SourceError(
                    f'{self._who}: start={start}: its last message has the sequence {found.last}; correct start, or write "new"'
                )
        end = found.last if begin.ends else None
        return _Place(max(start, found.first), end, found.created, found.last, found.deleted)

    def _named(self) -> str:
        """The beginning of the names of rows: a stream that was made anew has the same sequences again."""
        return "".join(each for each in self._place.created if each.isdigit())

    # messages: the data loop ---------------------------------------------------------------------

    def read(self, limit: int) -> list[tuple[Any, Any]]:
        self._ids = []
        consumer, place = self._consumer, self._place
        waiting = consumer.waiting
        # Looked at before what waits: all up to there had come by then.
        settled, anew = consumer.settled, consumer.anew
        while consumer.unsure:
            self._maybe_gone(*consumer.unsure.popleft())
        if not waiting:
            if anew is not None:
                self._begin_anew(anew)
            elif settled >= place.next:
                self._pass(settled + 1)
            if consumer.error is not None:
                raise consumer.error
        end = self._place.end
        if end is not None and self._place.next > end:
            raise EndOfStream
        rows: list[tuple[Any, Any]] = []
        ids: list[str] = []
        while waiting and len(rows) < limit:
            sequence, message, time = waiting[0]
            if sequence > self._place.next:
                self._pass(sequence)
            try:
                row = self._row(sequence, message, time)
            except Exception as wrong:
                self._refused(sequence, message, wrong)
            else:
                rows.append(row)
                ids.append(f"{self._id}-{sequence}")
            waiting.popleft()
            consumer.taken(message)
            self._place = self._place._replace(next=sequence + 1)
        self._ids = ids
        consumer.more()
        return rows

    def _row(self, sequence: int, message: Any, time: int) -> tuple[Any, Any]:
        reading, headers = self._reading, message.headers
        value = reading.deserialize(message.data)
        key = message.subject if reading.key is None else (headers or {}).get(reading.key)
        if reading.metadata:
            value = {
                "value": value,
                "subject": message.subject,
                "sequence": sequence,
                "timestamp": time / _NANO,
                "headers": dict(headers or {}),
                "stream": self._stream,
            }
        return key, value

    def _refused(self, sequence: int, message: Any, wrong: Exception) -> None:
        place = f"{self._who}, sequence {sequence} ({message.subject})"
        if not self._reading.passes_bad:
            raise SourceError(
                f"{place}: {type(wrong).__name__}: {wrong}; take another deserializer, or "
                'leave such messages out with on_bad_message="skip"'
            ) from wrong
        self._bad += 1
        if self._bad == 1:
            self._client.say(told_bad(place, wrong))

    # what was removed before it was read -----------------------------------------------------------

    def _pass(self, to: int) -> None:
        """Go on at `to`, behind sequences that the server has not given: without a filter they are gone."""
        place = self._place
        gone, deleted = 0, place.deleted
        if self._subject is None:
            of_old = max(0, min(to, place.begun + 1) - place.next)
            # Some of those were gone before the stream was read first. Which of them is not known, only how many.
            deleted -= min(of_old, deleted)
            gone = to - place.next - (place.deleted - deleted)
        if gone:
            self._tell(
                self._removed + self._unsure + gone,
                f"{gone} messages from sequence {place.next} on were removed before they were read (limits of the stream, purge, "
                "deletion): they are lost here; keep more of them, or read faster",
            )
            self._removed += gone
        self._place = place._replace(next=to, deleted=deleted)

    def _maybe_gone(self, first: int, number: int) -> None:
        self._unsure += number
        self._tell(
            self._removed + self._unsure,
            f"{number} messages of all subjects before sequence {first} were removed, and some of this one may be among them: they are lost "
            "here; keep more of them, or read faster",
        )

    def _tell(self, total: int | None, text: str) -> None:
        """Say it, where so many in all are at least twice those that were said last: a stream may have a gap behind each message."""
        if self._reading.fails:
            raise SourceError(f'{self._who}: {text}. To go on without them: on_removed="warn" and --resume')
        if total is None or total >= 2 * self._told:
            self._told = total or self._told
            self._client.say(f"{self._who}: {text}")

    def _begin_anew(self, found: Stream) -> None:
        old = self._place
        text = f"it has had {found.last} messages and is read up to {old.next - 1}: "
        if found.created != old.created:
            text = "it was deleted and made anew: "
            end = None if old.end is None else found.last
            place = _Place(found.first, end, found.created, found.last, found.deleted)
        else:  # an older state of it
            place = old._replace(next=found.last + 1, begun=found.last)
        self._tell(None, f"{text}going on at sequence {place.next}")
        self._place = place
        self._id = self._named()
        self._consumer.begin(place.created, place.next, place.end)

    # the rest ------------------------------------------------------------------------------------

    def position(self) -> tuple[Any, ...]:
        return tuple(self._place)

    def row_ids(self) -> list[str]:
        return self._ids

    def caught_up(self) -> bool:
        return self.lag() == 0

    def lag(self) -> int | None:
        pending = self._consumer.pending
        return None if pending is None or self._place.end is not None else pending + len(self._consumer.waiting)

    def counters(self) -> dict[str, int]:
        bad = {"bad_messages_skipped": self._bad} if self._reading.passes_bad else {}
        return {**bad, "messages_removed_unread": self._removed} if self._removed else bad

    def close(self) -> None:
        self._consumer.close()
