"""A topic of Kafka as a sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from esault.errors import SinkError, TopologyError
from esault.kafka.client import check_topics, settings
from esault.kafka.outbox import Outbox
from esault.sinks.serializers import serializer
from esault.topology.context import Context
from esault.topology.sink import Row, Sink

__all__ = ["KafkaSink"]


class KafkaSink(Sink):
    """Messages of a topic, one for each row; needs `esault[kafka]`.

    `topic` is a name, or a function `(key, value) -> name`. `key_serializer`, `value_serializer`: "text", "json", "bytes", or a
    function from the key or value to bytes (`esault.sinks.serializers`). A key that is None is no key; a value that is None is a
    tombstone. `headers`, `timestamp` and `partition` are functions `(key, value)`: a dict of text to text or bytes, seconds since the epoch,
    a partition's number. Without `partition` messages of a key share one, the same as Java's clients choose. `partitions=4`
    makes a topic that is missing, with four.

    At least once: rows are with the broker, on all replicas that are in sync, before their tuples are acked, or with checkpoints
    before a checkpoint is complete. What is replayed after a crash is there twice. `config` has any other setting of librdkafka, such as
    `{"security.protocol": "SASL_SSL"}`. While no broker answers the sink waits, and says so.
    """

    shares_paths: ClassVar[bool] = True

    def __init__(
        self,
        topic: str | Callable[[Any, Any], str],
        bootstrap_servers: str = "localhost:9092",
        *,
        key_serializer: Any = "text",
        value_serializer: Any = "json",
        headers: Callable[[Any, Any], Mapping[str, Any]] | None = None,
        timestamp: Callable[[Any, Any], float] | None = None,
        partition: Callable[[Any, Any], int] | None = None,
        partitions: int | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(topic) and (not isinstance(topic, str) or not topic):
            raise TopologyError(f"KafkaSink: topic={topic!r}: write its name, or a function of key and value")
        for name, one in (("headers", headers), ("timestamp", timestamp), ("partition", partition)):
            if one is not None and not callable(one):
                raise TopologyError(f"KafkaSink: {name}={one!r}: write a function of key and value")
        if partitions is not None and (not isinstance(partitions, int) or partitions < 1):
            raise TopologyError(
                f"KafkaSink: partitions={partitions!r}: write how many a topic that is missing gets, such as 4"
            )
        self.topic = topic
        self._config = settings("KafkaSink", bootstrap_servers, config)
        self._key = serializer("KafkaSink", "key_serializer", key_serializer)
        self._value = serializer("KafkaSink", "value_serializer", value_serializer)
        self._extras = {
            name: one
            for name, one in (("headers", headers), ("timestamp", _in_ms(timestamp)), ("partition", partition))
            if one is not None
        }
        self._partitions = partitions
        self._outbox: Outbox | None = None

    def check(self) -> None:
        """Raises SinkError where no broker answers, the password is wrong, or the topic is missing."""
        topics = [self.topic] if isinstance(self.topic, str) else []
        check_topics("KafkaSink", SinkError, self._config, topics, self._partitions)

    def open(self, context: Context) -> None:
        """Nothing yet: the first row connects."""
        self.context = context
        self._outbox = None

    def write(self, rows: Sequence[Row]) -> None:
        """Give them to the producer, which sends them in the background; waits while it is full."""
        self._write([row.key for row in rows], [row.value for row in rows])

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time: float, ids: Sequence[str] | None) -> None:
        """As `write`."""
        self._write(keys, values)

    def prepare(self, epoch: int) -> Any:
        """Wait until the broker has all rows."""
        if self._outbox is not None:
            self._outbox.flush()

    def close(self) -> None:
        """Let go of the producer; what was not prepared comes again."""
        self._outbox = None

    def _write(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        if self._outbox is None:
            self._outbox = Outbox("KafkaSink", self._config, SinkError, self.context.logger.warning)
        for topic, messages in self._messages(keys, values).items():
            self._outbox.put(topic, messages)

    def _messages(self, keys: Sequence[Any], values: Sequence[Any]) -> dict[str, list[dict[str, Any]]]:
        to_key, to_value = self._key, self._value
        try:
            made: list[dict[str, Any]] = [
                {
                    "key": None if key is None else to_key(key),
                    "value": None if value is None else to_value(value),
                }
                for key, value in zip(keys, values)
            ]
        except SinkError as error:
            raise SinkError(f"KafkaSink, topic {self.topic!r}: {error}") from None
        for name, extra in self._extras.items():
            for message, key, value in zip(made, keys, values):
                message[name] = extra(key, value)
        if isinstance(self.topic, str):
            return {self.topic: made}
        found: dict[str, list[dict[str, Any]]] = {}
        for message, key, value in zip(made, keys, values):
            found.setdefault(self.topic(key, value), []).append(message)
        return found


def _in_ms(timestamp: Callable[[Any, Any], float] | None) -> Callable[[Any, Any], int] | None:
    return None if timestamp is None else lambda key, value: round(timestamp(key, value) * 1000)
