"""Topics of Kafka as a source: each partition is a split."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from esault.errors import SourceError, TopologyError
from esault.kafka.client import ANSWER_WITHIN, Watch, check_topics, failure, libraries, settings
from esault.topology.arguments import check_seconds
from esault.topology.context import Context
from esault.topology.split_source import SplitReader, SplitSource
from esault.topology.spout import EndOfStream

__all__ = ["KafkaSource"]

_NAMED: dict[str, Callable[[bytes], Any]] = {"text": bytes.decode, "json": json.loads, "bytes": bytes}
#: without the first a partition that had been read to its end gives a third of the messages a second
_SET = {"fetch.queue.backoff.ms": 1, "isolation.level": "read_committed"}
#: not for users to change: offsets are the engine's
_OURS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
}


class KafkaSource(SplitSource[Any, Any]):
    """Messages of topics, one tuple for each; needs `esault[kafka]`.

    Each partition is a split, "topic[partition]": the sub-units of the spout share them, and their number may change while they read.
    A partition has its own offset, which checkpoints hold, and its own watermark. Partitions that are added are found every `every`
    seconds, and read from their first message. Messages of a partition stay in order.

    `start`: "earliest", or a time in seconds since the epoch: the first message of this time or a later one. It holds where a partition
    is opened for the first time. `until="end"`: a partition ends at the offset at which it stood then. `metadata=True`: a value is a
    dict of "value", "timestamp" (seconds since the epoch, or None), "headers" (a dict), "topic", "partition" and "offset". `on_bad_message="skip"` counts messages that a deserializer refuses, in place of ending the run. `group_id`: offsets are
    also committed to this consumer group, behind what is durable, for tools that show its lag. The engine does not read them.

    Transactions that were aborted or are open are not seen, unless `config` says so. Each partition has a consumer of its own.
    """

    def __init__(
        self,
        topics: str | Iterable[str],
        bootstrap_servers: str = "localhost:9092",
        *,
        key_deserializer: Any = "text",
        value_deserializer: Any = "json",
        start: str | float = "earliest",
        until: str | None = None,
        every: float = 10.0,
        metadata: bool = False,
        on_bad_message: str = "fail",
        group_id: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.topics = [topics] if isinstance(topics, str) else list(topics)
        if not self.topics or not all(isinstance(topic, str) and topic for topic in self.topics):
            raise TopologyError(f"KafkaSource: topics={topics!r}: write a topic's name, or a list of names")
        if until not in (None, "end"):
            raise TopologyError(f'KafkaSource: until={until!r}: write "end", or None for a stream without end')
        if start != "earliest" and (isinstance(start, (str, bool)) or not isinstance(start, (int, float))):
            raise TopologyError(f'KafkaSource: start={start!r}: write "earliest", or a time in seconds since the epoch')
        if on_bad_message not in ("fail", "skip"):
            raise TopologyError(f'KafkaSource: on_bad_message={on_bad_message!r}: write "fail" or "skip"')
        group = {"group.id": group_id or "esault"}  # a client asks for one
        self._config = settings("KafkaSource", bootstrap_servers, {**_SET, **group, **(config or {}), **_OURS})
        self._key = _deserializer("key_deserializer", key_deserializer)
        self._value = _deserializer("value_deserializer", value_deserializer)
        self._start = None if start == "earliest" else float(start)
        self._ends = until == "end"
        self._metadata, self._skips, self._group = metadata, on_bad_message == "skip", group_id
        self.discovery_interval = None if self._ends else check_seconds("KafkaSource", "every", every)
        self._warn: Callable[[str], None] | None = None
        self._admin: Any = None
        self._found: list[str] = []

    def check(self) -> None:
        """Raises SourceError where no broker answers, the password is wrong, or a topic is missing."""
        check_topics("KafkaSource", SourceError, self._config, self.topics)

    def open(self, context: Context) -> None:
        """Connect nothing yet: each split has a consumer of its own."""
        self._warn = context.logger.warning

    def splits(self) -> Sequence[str]:
        """Return the names of all partitions there are now; those known before while no broker answers."""
        if self._admin is None:
            found = check_topics("KafkaSource", SourceError, self._config, self.topics)
            self._admin = self._client()
        else:
            kafka = libraries("KafkaSource", SourceError)
            try:
                known = self._admin.list_topics(timeout=1).topics
            except kafka.KafkaException:
                return self._found  # readers say it, and wait
            found = {topic: len(known[topic].partitions) for topic in self.topics if topic in known}
        names = [f"{topic}[{number}]" for topic in self.topics for number in range(found.get(topic, 0))]
        gone = [name for name in self._found if name not in names]
        self._found = names + gone  # a topic that was deleted is told by the reader
        return self._found

    def open_split(self, id: str, position: Any) -> SplitReader[Any, Any]:
        """Return a reader of this partition from (offset, end) on. Raises SourceError."""
        topic, _, number = id[:-1].rpartition("[")
        return _Partition(self, topic, int(number), position)

    def _client(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({**self._config, "error_cb": Watch(self._config["bootstrap.servers"])})


class _Partition(SplitReader[Any, Any]):
    def __init__(self, source: KafkaSource, topic: str, number: int, position: Any) -> None:
        self._kafka = libraries("KafkaSource", SourceError)
        self._source, self._name = source, f"KafkaSource, {topic}[{number}]"
        self._watch = Watch(source._config["bootstrap.servers"], source._warn)
        self._consumer = self._kafka.Consumer({**source._config, "error_cb": self._watch})
        self._topic, self._number = topic, number
        self._skipped = 0
        try:
            begin: tuple[int, int | None] = position or self._begin()
            self._next, self._end = begin
            self._consumer.assign([self._place(self._next)])
        except self._kafka.KafkaException as error:
            self._consumer.close()
            raise failure(SourceError, self._name, error.args[0]) from None

    def _place(self, offset: int) -> Any:
        return self._kafka.TopicPartition(self._topic, self._number, offset)

    def _begin(self) -> tuple[int, int | None]:
        low, high = self._consumer.get_watermark_offsets(self._place(0), timeout=ANSWER_WITHIN)
        if self._source._start is not None:
            asked = [self._place(round(self._source._start * 1000))]
            (found,) = self._consumer.offsets_for_times(asked, timeout=ANSWER_WITHIN)
            if found.error is not None:
                raise self._kafka.KafkaException(found.error)
            low = found.offset if found.offset >= 0 else high
        return low, high if self._source._ends else None

    def read(self, limit: int) -> list[tuple[Any, Any]]:
        if self._end is not None and self._next >= self._end:
            raise EndOfStream
        rows: list[tuple[Any, Any]] = []
        for message in self._consumer.consume(limit, 0) if limit > 0 else ():
            error = message.error()
            if error is not None:
                if error.name() != "_PARTITION_EOF":
                    raise self._failed(error)
                self._next = max(self._next, message.offset())
                continue
            if self._end is not None and message.offset() >= self._end:
                self._next = self._end
                break
            try:
                rows.append(self._row(message))
            except Exception as wrong:
                if not self._source._skips:
                    raise SourceError(
                        f"{self._name}, offset {message.offset()}: {type(wrong).__name__}: {wrong}; take another deserializer, or "
                        'leave such messages out with on_bad_message="skip"'
                    ) from wrong
                self._skipped += 1
            self._next = message.offset() + 1
        if self._watch.refused:
            raise failure(SourceError, self._name, self._watch.refused)
        if rows:
            self._watch.answered()
        return rows

    def _row(self, message: Any) -> tuple[Any, Any]:
        source = self._source
        key, value = source._key(message.key()), source._value(message.value())
        if source._metadata:
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

    def _failed(self, error: Any) -> Exception:
        if error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            return SourceError(
                f"{self._name}: offset {self._next} is not there any more (retention.ms, retention.bytes); begin anew with --restart, "
                "and keep messages longer than a run may stand still"
            )
        return failure(SourceError, self._name, error)

    def position(self) -> tuple[int, int | None]:
        return self._next, self._end

    def commit(self, position: tuple[int, int | None]) -> None:
        if self._source._group is not None:
            self._consumer.commit(offsets=[self._place(position[0])], asynchronous=True)

    def lag(self) -> int | None:
        _, high = self._consumer.get_watermark_offsets(self._place(0), cached=True)
        return None if high < 0 else max(0, (high if self._end is None else self._end) - self._next)

    def counters(self) -> dict[str, int]:
        return {"bad_messages_skipped": self._skipped} if self._source._skips else {}

    def close(self) -> None:
        self._consumer.close()


def _deserializer(option: str, wanted: Any) -> Callable[[bytes | None], Any]:
    function = _NAMED.get(wanted) if isinstance(wanted, str) else getattr(wanted, "deserialize", wanted)
    if function is None or not callable(function):
        raise TopologyError(
            f'KafkaSource: {option}={wanted!r}: write "json", "text", "bytes", or a function from bytes'
        )
    return lambda data: None if data is None else function(data)
