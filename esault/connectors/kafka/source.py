"""Topics of Kafka as a source: each partition is a split."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from esault.connectors.kafka.client import Watch, check_topics, libraries, settings
from esault.connectors.kafka.dead_letters import DeadLetters
from esault.connectors.kafka.partition import Begin, Partition, Reading
from esault.errors import SourceError, TopologyError
from esault.sources import deserializers
from esault.topology.arguments import check_seconds, listed
from esault.topology.context import Context
from esault.topology.split_source import SplitReader, SplitSource

__all__ = ["Deserializer", "KafkaSource", "deserializer"]

_WHO = "KafkaSource"
#: without the first a partition that had been read to its end gives a third of the messages a second
_SET = {"fetch.queue.backoff.ms": 1, "isolation.level": "read_committed"}
#: not for users to change: offsets are the engine's
_OURS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",  # what the user says is done by the reader, which says so
}
_STARTS = ("earliest", "latest", "committed")
#: values of auto.offset.reset, by its other names
_RESETS = {
    **dict.fromkeys(("error", "none"), "error"),
    **dict.fromkeys(("earliest", "smallest", "beginning"), "earliest"),
    **dict.fromkeys(("latest", "largest", "end"), "latest"),
}


class KafkaSource(SplitSource[Any, Any]):
    """Messages of topics, one tuple for each; needs `esault[kafka]`.

    Each partition is a split, "topic[partition]": the sub-units of the spout share them, and their number may change while they read.
    A partition has its own offset, which checkpoints hold, and its own watermark. Messages of a partition stay in order. A name that
    begins with "^" is a pattern: all topics whose names match it, but for internal ones. Topics and partitions that are added are found
    every `every` seconds, and read from their first message.

    `start`: "earliest"; "latest", messages that come from now on; "committed", the offsets of `group_id`; or a time in seconds since the
    epoch, the first message of this time or a later one. It holds where a partition is opened for the first time. `until="end"`: a
    partition ends at the offset at which it stood then. `metadata=True`: a value is a dict of "value", "timestamp" (seconds since the
    epoch, or None), "headers" (a dict), "topic", "partition" and "offset". `group_id`: offsets are also committed to this consumer
    group, behind what is durable, for tools that show its lag. The engine reads them with start="committed" alone.

    `on_bad_message`: what follows where a deserializer refuses a message. "fail" ends the run; "skip" counts it; "dead-letter" also gives
    it to `dead_letter_topic` as it was, with Kafka Connect's headers `__connect.errors.topic`, `.partition`, `.offset`,
    `.exception.class.name` and `.exception.message`; it is there before a later message counts as read.

    `config` has any other setting of librdkafka. "auto.offset.reset" says where a partition goes on that has forgotten the offset, or
    where the group has none: "earliest" or "latest", with a line that says so; "error", as it is without, ends the run.

    Transactions that were aborted or are open are not seen, unless `config` says so. Each partition has a consumer of its own.
    """

    delivery_guarantee: ClassVar[str] = "with checkpoints each message counts once: offsets are in them"
    extra: ClassVar[str] = "kafka"

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
        dead_letter_topic: str | None = None,
        group_id: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.topics: list[str] = listed(topics)
        if not self.topics or not all(isinstance(topic, str) and topic for topic in self.topics):
            raise TopologyError(f"KafkaSource: topics={topics!r}: write a topic's name, or a list of names")
        self._patterns = [_compiled(topic) for topic in self.topics if topic.startswith("^")]
        self._names = [topic for topic in self.topics if not topic.startswith("^")]
        if until not in (None, "end"):
            raise TopologyError(f'KafkaSource: until={until!r}: write "end", or None for a stream without end')
        number = isinstance(start, (int, float)) and not isinstance(start, bool)
        if start not in _STARTS and not number:
            raise TopologyError(
                f'KafkaSource: start={start!r}: write "earliest", "latest", "committed", or a time in seconds since the epoch'
            )
        if start == "committed" and group_id is None:
            raise TopologyError('KafkaSource: start="committed" goes on at the offsets of a group: say group_id="..."')
        if on_bad_message not in ("fail", "skip", "dead-letter"):
            raise TopologyError(
                f'KafkaSource: on_bad_message={on_bad_message!r}: write "fail", "skip" or "dead-letter"'
            )
        if (on_bad_message == "dead-letter") != (dead_letter_topic is not None):
            raise TopologyError(
                f"KafkaSource: on_bad_message={on_bad_message!r}, dead_letter_topic={dead_letter_topic!r}: "
                'on_bad_message="dead-letter" and dead_letter_topic="..." go together'
            )
        given = dict(config) if isinstance(config, Mapping) else {}
        if "group.id" in given:
            raise TopologyError(f'KafkaSource: "group.id" in config: say group_id={given["group.id"]!r} beside it')
        reset = _RESETS.get(given.get("auto.offset.reset", "error"))
        if reset is None:
            raise TopologyError(
                f'KafkaSource: "auto.offset.reset": {given["auto.offset.reset"]!r} in config: write "earliest", "latest" or "error"'
            )
        group = {"group.id": group_id or "esault"}  # a client asks for one
        self._config = {**_SET, **group, **settings("KafkaSource", bootstrap_servers, config), **_OURS}
        self._key = deserializer("key_deserializer", key_deserializer)
        self._value = deserializer("value_deserializer", value_deserializer)
        self._begin = Begin(start if isinstance(start, str) else float(start), reset, until == "end")
        self.moving_start = start == "latest" or (start == "committed" and reset == "latest")
        self._reads = Reading(metadata, on_bad_message != "fail", group_id is not None, reset)
        self._dead_letter_topic = dead_letter_topic
        self._dead_letters: DeadLetters | None = None
        self._watch: Watch | None = None
        self.discovery_interval = None if until == "end" else check_seconds("KafkaSource", "every", every)
        self._say: Callable[[str], None] = lambda line: None
        self._admin: Any = None
        self._found: list[str] = []
        self._said_none = False

    def check(self) -> None:
        """Raises SourceError where no broker answers, the password is wrong, or a topic is missing."""
        dead = [] if self._dead_letter_topic is None else [self._dead_letter_topic]
        known = check_topics("KafkaSource", SourceError, self._config, [*self._names, *dead])
        if self._patterns and not self._names and self.discovery_interval is None and not self._matching(known):
            raise SourceError(
                f"KafkaSource: no topic matches {', '.join(self.topics)}; correct the pattern, or make one"
            )
        self._key.check()
        self._value.check()

    def open(self, context: Context) -> None:
        """Connect nothing yet: each split has a consumer of its own."""
        self._say = context.logger.warning

    def splits(self) -> Sequence[str]:
        """Return the names of all partitions there are now; those known before while no broker answers."""
        if self._admin is None:
            known = check_topics("KafkaSource", SourceError, self._config, self._names)
            self._admin = self._client()
        else:
            kafka = libraries("KafkaSource", SourceError)
            try:
                topics = self._admin.list_topics(timeout=1).topics
            except kafka.KafkaException:
                return self._found  # readers say it, and wait
            known = {name: len(topic.partitions) for name, topic in topics.items()}
        topics = [*(name for name in self._names if name in known), *self._matching(known)]
        if not topics and not self._said_none:
            self._said_none = True
            self._say(f"no topic matches {', '.join(self.topics)} yet: waiting for one")
        names = [f"{topic}[{number}]" for topic in dict.fromkeys(topics) for number in range(known[topic])]
        there = set(names)
        self._found = names + [
            name for name in self._found if name not in there
        ]  # one that was deleted is told by the reader
        return self._found

    def open_split(self, id: str, position: Any) -> SplitReader[Any, Any]:
        """Return a reader of this partition from (offset, end) on. Raises SourceError."""
        return self._reader(id, position, self._begin)

    def open_added_split(self, id: str) -> SplitReader[Any, Any]:
        """Return a reader from the first message on; with a start of "committed" or a time as for any other."""
        begin = self._begin._replace(start="earliest") if self._begin.start == "latest" else self._begin
        return self._reader(id, None, begin._replace(otherwise="earliest"))

    def close(self) -> None:
        """Let go of the connections; readers are closed before."""
        if self._dead_letters is not None:
            self._dead_letters.close()
        self._key.close()
        self._value.close()

    def _reader(self, id: str, position: Any, begin: Begin) -> Partition:
        topic, _, number = id[:-1].rpartition("[")
        if self._dead_letter_topic is not None and self._dead_letters is None:
            self._dead_letters = DeadLetters(self._dead_letter_topic, self._config, self._say)
        key, value = self._key.of(topic, "key"), self._value.of(topic, "value")
        place, dead_letters = (topic, int(number)), self._dead_letters
        if self._watch is None:  # one for all, so that a broker that is away is said once
            self._watch = Watch(self._config["bootstrap.servers"], self._say)
        return Partition(
            config=self._config,
            place=place,
            position=position,
            begin=begin,
            reads=self._reads,
            to_key=key,
            to_value=value,
            dead_letters=dead_letters,
            watch=self._watch,
            say=self._say,
        )

    def _matching(self, known: Iterable[str]) -> list[str]:
        names = [name for name in sorted(known) if not name.startswith("__") and name != self._dead_letter_topic]
        return [name for name in names if any(pattern.search(name) for pattern in self._patterns)]

    def _client(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({**self._config, "error_cb": Watch(self._config["bootstrap.servers"])})


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise TopologyError(f"KafkaSource: topics={pattern!r} is no pattern: {error}; correct it") from None


class Deserializer:
    """A deserializer as the user wrote it. What is None stays so.

    "json", "text", "bytes"; a function from bytes; or an object with `deserializer(topic, field)`, as those of `esault.formats`.
    """

    def __init__(self, wanted: Any) -> None:
        self._wanted = wanted

    def check(self) -> None:
        """Raise SourceError where what it needs is not there, such as a schema registry."""
        if hasattr(self._wanted, "deserializer"):
            self._wanted.check(_WHO, SourceError)
            self._wanted.close()

    def close(self) -> None:
        """Let go of what it needs; readers have been closed."""
        if hasattr(self._wanted, "deserializer"):
            self._wanted.close()

    def of(self, topic: str, field: str) -> Callable[[bytes], Any]:
        """Return the function for the keys or the values of a topic."""
        made = getattr(self._wanted, "deserializer", None)
        if made is not None:
            function: Callable[[bytes], Any] = made(topic, field)
            return function
        return self._wanted  # type: ignore[no-any-return]


def deserializer(option: str, wanted: Any) -> Deserializer:
    """Return what `wanted` names. Raises TopologyError."""
    if hasattr(wanted, "deserializer"):
        return Deserializer(wanted)
    return Deserializer(deserializers.deserializer(_WHO, option, wanted, "a format of esault.formats, "))
