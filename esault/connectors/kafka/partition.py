"""The reader of one partition: where it begins, and its messages as tuples.

It is one module of over 300 lines: all of it is about one consumer and the offset at which it stands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from esault.connectors.kafka.client import ANSWER_WITHIN, UNSETTLED, Watch, failure, libraries, raise_failure
from esault.connectors.kafka.dead_letters import DeadLetters
from esault.errors import EsaultError, SourceError
from esault.sources.deserializers import told_bad
from esault.topology.columns import Columns
from esault.topology.split_source import SplitReader
from esault.topology.spout import EndOfStream

__all__ = ["Begin", "Partition", "Reading"]

#: seconds after which a broker that has no leader for a partition is asked again
AGAIN = 0.1
#: seconds that a broker which was away has to say that it is back
_LOOK_WITHIN = 0.2
#: an offset, and the one at which the partition ends
_Position = tuple[int, "int | None"]


class Begin(NamedTuple):
    """The place where a partition is begun for the first time."""

    #: "earliest", "latest", "committed", or seconds since the epoch
    start: str | float
    #: where the group has no offset: "earliest", "latest" or "error"
    otherwise: str
    #: it ends where it stands then
    ends: bool


class Reading(NamedTuple):
    """Options of reading the messages."""

    metadata: bool
    #: those that a deserializer refuses are counted
    passes_bad: bool
    #: offsets are also committed to the group
    commits: bool
    #: where to go on that has forgotten an offset: "earliest", "latest" or "error"
    reset: str


class Partition(SplitReader[Any, Any]):
    """The messages of one partition, by a consumer of its own. `watch` is that of all partitions; `say` takes lines for the user."""

    def __init__(
        self,
        *,
        config: Mapping[str, Any],
        place: tuple[str, int],
        position: _Position | None,
        begin: Begin,
        reads: Reading,
        to_key: Callable[[Any], Any],
        to_value: Callable[[Any], Any],
        dead_letters: DeadLetters | None,
        watch: Watch,
        say: Callable[[str], None],
    ) -> None:
        self._kafka = libraries("KafkaSource", SourceError)
        self._topic, self._number = place
        self._name = f"KafkaSource, {self._topic}[{self._number}]"
        self._group = config["group.id"]
        self._reads, self._to_key, self._to_value = reads, to_key, to_value
        self._dead_letters, self._say = dead_letters, say
        self._watch = watch
        self._said_refused = False
        self._consumer = self._kafka.Consumer({**config, "error_cb": self._watch, "on_commit": self._told})
        #: counted so far: left out, and passed over where offsets were gone
        self._bad = self._lost = 0
        #: up to which offset it is to be read to have caught up, once that is asked for
        self._goal: int | None = None
        #: rows that wait until their bad neighbours are in the dead letter topic, and the offset behind them
        self._held: tuple[list[tuple[Any, Any]], int] | None = None
        try:
            self._next, self._end = position or self._begun(begin)
            if not begin.ends:
                self._end = None
            elif self._end is None:  # the run before it had no end
                self._end = self._bounds()[1]
            self._consumer.assign([self._place(self._next)])
        except self._kafka.KafkaException as error:
            self._consumer.close()
            raise_failure(SourceError, self._name, error.args[0])
        except SourceError:
            self._consumer.close()
            raise

    # where it begins ---------------------------------------------------------------------------

    def _place(self, offset: int) -> Any:
        return self._kafka.TopicPartition(self._topic, self._number, offset)

    def _ask(self, question: Callable[[], Any]) -> Any:
        """Ask the broker, and again while the partition has no leader: it may have been made a moment ago."""
        until = time.monotonic() + ANSWER_WITHIN
        while True:
            try:
                return question()
            except self._kafka.KafkaException as error:
                if error.args[0].name() not in UNSETTLED or time.monotonic() >= until:
                    raise
            time.sleep(AGAIN)

    def _bounds(self) -> tuple[int, int]:
        low, high = self._ask(lambda: self._consumer.get_watermark_offsets(self._place(0), timeout=ANSWER_WITHIN))
        return low, high

    def _begun(self, begin: Begin) -> _Position:
        low, high = self._bounds()
        offset = {"earliest": low, "latest": high}.get(str(begin.start))
        if begin.start == "committed":
            offset = self._committed(begin, low, high)
        elif offset is None:
            found = self._ask(lambda: self._offset_at(float(begin.start)))
            offset = found.offset if found.offset >= 0 else high
        return offset, high if begin.ends else None

    def _offset_at(self, seconds: float) -> Any:
        (found,) = self._consumer.offsets_for_times([self._place(round(seconds * 1000))], timeout=ANSWER_WITHIN)
        if found.error is not None:
            raise self._kafka.KafkaException(found.error)
        return found

    def _committed(self, begin: Begin, low: int, high: int) -> int:
        (found,) = self._consumer.committed([self._place(0)], timeout=ANSWER_WITHIN)
        if found.error is not None:
            raise self._kafka.KafkaException(found.error)
        if found.offset >= 0:
            return int(found.offset)
        if begin.otherwise == "error":
            raise SourceError(
                f'{self._name}: the group {self._group!r} has no offset; say where to begin then with "auto.offset.reset" in config, '
                '"earliest" or "latest", or correct group_id'
            )
        return low if begin.otherwise == "earliest" else high

    # messages ----------------------------------------------------------------------------------

    def read(self, limit: int) -> Sequence[tuple[Any, Any]] | Columns:
        if self._held is not None:
            return self._let_go()
        if self._end is not None and self._next >= self._end:
            raise EndOfStream
        messages = self._consumer.consume(limit, 0) if limit > 0 else []
        if self._watch.away and not messages:
            self._watch.look(lambda: self._consumer.list_topics(self._topic, timeout=_LOOK_WITHIN))
        keys: list[Any] = []
        values: list[Any] = []
        if messages and self._are_rows(messages, keys, values):
            self._next = messages[-1].offset() + 1
            self._watch.answered()
            return Columns(tuple(keys), tuple(values))
        rows: list[tuple[Any, Any]] = []
        behind, bad = self._next, False
        for number, message in enumerate(messages):
            error = message.error()
            if error is not None:
                if error.name() != "_PARTITION_EOF":
                    behind = self._reset(error, behind)
                    break
                behind = max(behind, message.offset())
                continue
            if self._end is not None and message.offset() >= self._end:
                behind = self._end
                break
            try:
                rows.append(self._row(message, keys[number : number + 1], values[number : number + 1]))
            except Exception as wrong:
                bad = True
                self._refused(message, wrong)
            behind = message.offset() + 1
        if self._watch.refused:
            raise failure(SourceError, self._name, self._watch.refused)
        if behind != self._next:
            self._watch.answered()
        if bad and self._dead_letters is not None:
            self._held = rows, behind
            return self._let_go()
        self._next = behind
        return rows

    def _are_rows(self, messages: Sequence[Any], keys: list[Any], values: list[Any]) -> bool:
        """Return whether messages are rows and nothing else, with their keys and values in these lists.

        False: they are to be looked at one by one, which takes longer; the lists have those that were read by then.
        """
        kind = self._kafka.Message
        if self._reads.metadata or self._watch.refused or any(error is not None for error in map(kind.error, messages)):
            return False
        if self._end is not None and messages[-1].offset() >= self._end:
            return False
        try:
            _read(self._to_key, map(kind.key, messages), keys)
            _read(self._to_value, map(kind.value, messages), values)
        except Exception:  # which one it is, and what follows, is found by itself
            return False
        return True

    def _row(self, message: Any, keys: Sequence[Any], values: Sequence[Any]) -> tuple[Any, Any]:
        """Return the row of a message; `keys` and `values` have its own where they were read before."""
        (key,) = keys or _read(self._to_key, (message.key(),), [])
        (value,) = values or _read(self._to_value, (message.value(),), [])
        if self._reads.metadata:
            kind, milliseconds = message.timestamp()
            timestamp = None if kind == self._kafka.TIMESTAMP_NOT_AVAILABLE else milliseconds / 1000
            value = {
                "value": value,
                "timestamp": timestamp,
                "headers": dict(message.headers() or ()),
                "topic": self._topic,
                "partition": self._number,
                "offset": message.offset(),
            }
        return key, value

    # what cannot be read -----------------------------------------------------------------------

    def _refused(self, message: Any, wrong: Exception) -> None:
        where = f"{self._name}, offset {message.offset()}"
        if isinstance(wrong.__cause__, ConnectionError) and isinstance(wrong, EsaultError):
            said = SourceError(f"{where}: {wrong}")  # not the message is bad, but who knows its schema is away
            raise said from wrong.__cause__
        if not self._reads.passes_bad:
            raise SourceError(
                f"{where}: {type(wrong).__name__}: {wrong}; take another deserializer, or "
                'leave such messages out with on_bad_message="skip" or "dead-letter"'
            ) from wrong
        self._bad += 1
        if self._bad == 1:
            self._say(
                told_bad(where, wrong, "left out" if self._dead_letters is None else "given to the dead letter topic")
            )
        if self._dead_letters is not None:
            self._dead_letters.put(message, wrong)

    def _let_go(self) -> list[tuple[Any, Any]]:
        """Return the rows that were held back, once the broker has the dead letters."""
        assert self._held is not None and self._dead_letters is not None
        if not self._dead_letters.arrived():
            return []
        (rows, self._next), self._held = self._held, None
        return rows

    def _reset(self, error: Any, wanted: int) -> int:
        """Return the offset at which to go on, where the topic has forgotten the one that is wanted. Raises SourceError."""
        if error.name() not in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            raise failure(SourceError, self._name, error)
        gone = f"{self._name}: offset {wanted} is not there any more (retention.ms, retention.bytes)"
        if self._reads.reset == "error":
            raise SourceError(
                f'{gone}; begin anew with --restart, or say "auto.offset.reset" in config, "earliest" or "latest", where messages may '
                "be lost; and keep messages longer than a run may stand still"
            )
        try:
            low, high = self._bounds()
            offset = low if self._reads.reset == "earliest" else high
            self._consumer.assign([self._place(offset)])
        except self._kafka.KafkaException as away:
            raise_failure(SourceError, self._name, away.args[0])
        self._lost += max(0, offset - wanted)
        lost = f"{offset - wanted} messages are lost" if offset >= wanted else "the topic was made anew"
        self._say(f'{gone}: going on at {offset}, as "auto.offset.reset" says; {lost}')
        return offset

    # the rest ----------------------------------------------------------------------------------

    def position(self) -> _Position:
        return self._next, self._end

    def commit(self, position: _Position) -> None:
        if self._reads.commits:
            self._consumer.commit(offsets=[self._place(position[0])], asynchronous=True)

    def _told(self, error: Any, partitions: Any) -> None:
        """Say once that the group does not take offsets; a broker that is away is told of otherwise, and asked again."""
        if error is None or error.retriable() or self._said_refused or error.name().startswith("_"):
            return
        self._said_refused = True
        why = (
            "others read in it, by subscribing"
            if error.name() in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION")
            else str(error)
        )
        self._say(
            f"{self._name}: the group {self._group!r} takes no offsets ({why}): it does not show how far this run is; name a group_id "
            "that no one else has"
        )

    def caught_up(self) -> bool:
        if self._goal is None:
            try:
                self._goal = self._bounds()[1]
            except self._kafka.KafkaException:
                return False  # it is away: that is said where it is read
        return self._next >= self._goal and self._held is None

    def lag(self) -> int | None:
        _, high = self._consumer.get_watermark_offsets(self._place(0), cached=True)
        return None if high < 0 else max(0, (high if self._end is None else self._end) - self._next)

    def counters(self) -> dict[str, int]:
        counted = {"bad_messages_skipped": self._bad} if self._reads.passes_bad else {}
        return {**counted, "messages_lost_by_reset": self._lost} if self._lost else counted

    def close(self) -> None:
        self._consumer.close()


def _read(function: Callable[[Any], Any], raw: Iterable[Any], into: list[Any]) -> list[Any]:
    """Deserialize into a list, which has those before one that is refused."""
    into.extend(raw if function is bytes else (None if each is None else function(each) for each in raw))
    return into
