"""A topic of Kafka as a sink."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from esault.errors import SinkError, TopologyError
from esault.kafka.client import check_topics, settings
from esault.kafka.outbox import Outbox
from esault.kafka.transactions import Coordinator, Prepared, Transaction
from esault.sinks.serializers import serializer
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo, Sink

__all__ = ["KafkaSink"]


class KafkaSink(Sink):
    """Messages of a topic, one for each row; needs `esault[kafka]`.

    `topic` is a name, or a function `(key, value) -> name`. `key_serializer`, `value_serializer`: "text", "json", "bytes", or a
    function from the key or value to bytes (`esault.sinks.serializers`). A key that is None is no key; a value that is None is a
    tombstone. `headers`, `timestamp` and `partition` are functions `(key, value)`: a dict of text to text or bytes, seconds since the epoch,
    a partition's number. Without `partition` messages of a key share one, the same as Java's clients choose. `partitions=4`
    makes a topic that is missing, with four.

    `guarantee="at-least-once"`: rows are with the broker, on all replicas that are in sync, before their tuples are acked, or with
    checkpoints before a checkpoint is complete. What is replayed after a crash is there twice. `guarantee="exactly-once"`, with checkpoints:
    rows are in a transaction that is committed with the checkpoint, and readers with isolation.level=read_committed see each
    once. A run that is killed must be resumed within `transaction_timeout` seconds: then the broker gives the transaction up. The broker's
    transaction.max.timeout.ms allows 900 unless it is raised.

    `config` has any other setting of librdkafka, such as `{"security.protocol": "SASL_SSL"}`. While no broker answers the sink waits,
    and says so.
    """

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
        guarantee: str = "at-least-once",
        transaction_timeout: float = 900.0,
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
        if guarantee not in ("at-least-once", "exactly-once"):
            raise TopologyError(f'KafkaSink: guarantee={guarantee!r}: write "at-least-once" or "exactly-once"')
        if not isinstance(transaction_timeout, (int, float)) or transaction_timeout <= 0:
            raise TopologyError(f"KafkaSink: transaction_timeout={transaction_timeout!r}: write seconds, such as 900")
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
        self._exactly, self._timeout = guarantee == "exactly-once", transaction_timeout
        self._coordinator = Coordinator("KafkaSink", self._config, SinkError)
        self._outbox: Outbox | Transaction | None = None
        #: transactions that are prepared and not committed: a checkpoint may be given up
        self._prepared: list[Prepared] = []
        self._prefix = ""

    def check(self) -> None:
        """Raises SinkError where no broker answers, the password is wrong, or the topic is missing."""
        if self._exactly:
            self._coordinator.check()
        topics = [self.topic] if isinstance(self.topic, str) else []
        besides = ", or have it made with partitions=4"
        check_topics("KafkaSink", SinkError, self._config, topics, self._partitions, besides)

    def begin(self, run: RunInfo) -> None:
        """Raises SinkError for exactly-once without checkpoints."""
        if self._exactly and run.lineage == run.run:
            raise SinkError(
                'KafkaSink: guarantee="exactly-once" commits with checkpoints, and this run takes none: say --checkpoint 10, or '
                'guarantee="at-least-once"'
            )
        self._prefix = _prefix(run.lineage, run.unit)

    def open(self, context: Context) -> None:
        """Nothing yet: the first row connects."""
        self.context = context
        self._prefix = _prefix(context.lineage, context.unit)
        self._outbox, self._prepared = None, []

    def write(self, rows: Sequence[Row]) -> None:
        """Give them to the producer, which sends them in the background; waits while it is full."""
        self._write([row.key for row in rows], [row.value for row in rows])

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time: float, ids: Sequence[str] | None) -> None:
        """As `write`."""
        self._write(keys, values)

    def prepare(self, epoch: int) -> Any:
        """Wait until the broker has all rows. The handle names the transactions that are not committed yet."""
        if isinstance(self._outbox, Transaction):
            transaction, self._outbox = self._outbox, None
            self._prepared.append(transaction.prepare(self._coordinator))
        elif self._outbox is not None:
            self._outbox.flush()
        return tuple(map(tuple, self._prepared)) or None

    def commit(self, epoch: int, handle: Any) -> None:
        """Commit the transactions. Raises SinkError where the broker has given one up."""
        for each in handle or ():
            prepared = Prepared(*each)
            self._coordinator.commit(prepared)
            if prepared in self._prepared:
                self._prepared.remove(prepared)

    def forget_staged(self, kept: Sequence[Any] = ()) -> None:
        """Abort the transactions that earlier processes have left open: they hold readers back."""
        if self._exactly:
            self._coordinator.abort_all(self._prefix, {each[0] for handle in kept for each in handle or ()})
            self._coordinator.close()

    def end(self, ok: bool) -> None:
        """Let go of connections."""
        self._coordinator.close()

    def close(self) -> None:
        """Let go of the producer; what was not prepared comes again."""
        self._outbox = None
        self._coordinator.close()

    def _write(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        if not keys:
            return
        if self._outbox is None:
            self._outbox = self._begun()
        for topic, messages in self._messages(keys, values).items():
            self._outbox.put(topic, messages)

    def _begun(self) -> Outbox | Transaction:
        of = ("KafkaSink", self._config, SinkError, self.context.logger.warning)
        return Transaction(*of, f"{self._prefix}{uuid.uuid4().hex}", self._timeout) if self._exactly else Outbox(*of)

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


def _prefix(lineage: str, unit: str) -> str:
    """The beginning of the transactional ids of a sink, in all runs over a state folder."""
    return f"esault-{lineage}-{unit}-"
