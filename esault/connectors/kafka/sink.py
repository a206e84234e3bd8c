"""A topic of Kafka as a sink."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, ClassVar

from esault.connectors.kafka.client import check_topics, settings
from esault.connectors.kafka.outbox import Outbox
from esault.connectors.kafka.thread import Thread
from esault.connectors.kafka.transactions import Coordinator, Prepared, Transaction
from esault.errors import SinkError, TopologyError
from esault.sinks.serializers import Serializer, serializer
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo, Sink

__all__ = ["KafkaSink"]

#: seconds for which the end of a process waits until a broker has aborted what is open
_GIVE_UP_WITHIN = 1.0


class KafkaSink(Sink):
    """Messages of a topic, one for each row; needs `esault[kafka]`.

    `topic` is a name, or a function `(key, value) -> name`. `key_serializer`, `value_serializer`: "text", "json", "bytes", or a
    function from the key or value to bytes (`esault.sinks.serializers`), or a format of `esault.formats`. A key that is None is no key; a value that is None is a
    tombstone. `headers`, `timestamp` and `partition` are functions `(key, value)`: a dict of text to text or bytes, seconds since the epoch,
    a partition's number; None leaves it to the producer. Without `partition` messages of a key share one, the same as Java's clients choose. `partitions=4`
    makes a topic that is missing, with four.

    `guarantee="at-least-once"`: rows are with the broker, on all replicas that are in sync, before their tuples are acked, or with
    checkpoints before a checkpoint is complete. What is replayed after a crash is there twice. `guarantee="exactly-once"`, with checkpoints:
    rows are in a transaction that is committed with the checkpoint, and readers with isolation.level=read_committed see each
    once. A run that is killed must be resumed within `transaction_timeout` seconds: then the broker gives the transaction up. The broker's
    transaction.max.timeout.ms allows 900 unless it is raised.

    `config` has any other setting of librdkafka, such as `{"security.protocol": "SASL_SSL"}`. While no broker answers the sink waits,
    and says so.
    """

    delivery_guarantee: ClassVar[str] = 'at least once, or with guarantee="exactly-once" and checkpoints once'
    extra: ClassVar[str] = "kafka"

    def __init__(
        self,
        topic: str | Callable[[Any, Any], str],
        bootstrap_servers: str = "localhost:9092",
        *,
        key_serializer: Any = "text",
        value_serializer: Any = "json",
        headers: Callable[[Any, Any], Mapping[str, Any] | None] | None = None,
        timestamp: Callable[[Any, Any], float | None] | None = None,
        partition: Callable[[Any, Any], int | None] | None = None,
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
        #: what was given, and the function that it names
        self._key = key_serializer, serializer("KafkaSink", "key_serializer", key_serializer)
        self._value = value_serializer, serializer("KafkaSink", "value_serializer", value_serializer)
        #: functions for the keys and values of each topic
        self._made: dict[str, tuple[Serializer, Serializer]] = {}
        self._extras = {
            name: one
            for name, one in (("headers", headers), ("timestamp", _in_ms(timestamp)), ("partition", partition))
            if one is not None
        }
        self._partitions = partitions
        self._exactly, self._timeout = guarantee == "exactly-once", transaction_timeout
        self._coordinator = Coordinator("KafkaSink", self._config, SinkError)
        self._outbox: Outbox | Transaction | None = None
        #: threads that send, and that ask and tell the coordinator; made by `open`
        self._sender: Thread | None = None
        self._ender: Thread | None = None
        #: what was prepared last and the broker has not yet: what came later must not overtake it
        self._flushed: Future[None] | None = None
        #: the transaction that is begun ahead
        self._ahead: Future[Transaction] | None = None
        #: transactions that are prepared and not committed: a checkpoint may be given up
        self._prepared: list[Prepared] = []
        self._prefix = ""

    def destination(self) -> str:
        """Return where rows go, for people."""
        return "topics by a function" if callable(self.topic) else f"topic {self.topic}"

    def check(self) -> None:
        """Raises SinkError where no broker answers, the password is wrong, or the topic is missing."""
        if self._exactly:
            self._coordinator.check()
        topics = [self.topic] if isinstance(self.topic, str) else []
        besides = ", or have it made with partitions=4"
        check_topics("KafkaSink", SinkError, self._config, topics, self._partitions, besides)
        for given, _ in (self._key, self._value):
            if hasattr(given, "serializer"):
                given.check("KafkaSink", SinkError)
                given.close()

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
        self._outbox = self._flushed = self._ahead = None
        self._prepared, self._made = [], {}
        self._sender, self._ender = Thread("esault-kafka-send"), Thread("esault-kafka-end")

    def write(self, rows: Sequence[Row]) -> Future[None] | None:
        """Give them to the producer, which sends them in the background; a Future where they must wait for it."""
        return self._write([row.key for row in rows], [row.value for row in rows])

    def write_columns(
        self, keys: Sequence[Any], values: Sequence[Any], time: float, ids: Sequence[str] | None
    ) -> Future[None] | None:
        """As `write`."""
        return self._write(keys, values)

    def prepare(self, epoch: int) -> Any:
        """Return a Future of when the broker has all rows. The handle names the transactions that are not committed yet."""
        outbox = self._outbox
        if outbox is None:
            return self._handle()
        assert self._sender is not None and self._ender is not None
        self._flushed = flushed = self._sender.submit(outbox.flush)
        if not isinstance(outbox, Transaction):
            return flushed
        self._outbox = None
        return self._ender.submit(partial(self._described, flushed, outbox))

    def commit(self, epoch: int, handle: Any) -> Any:
        """Commit the transactions. Raises SinkError where the broker has given one up."""
        commit = partial(self._commit, handle)
        return commit() if not handle or self._ender is None else self._ender.submit(commit)

    def _handle(self) -> tuple[Any, ...] | None:
        return tuple(map(tuple, list(self._prepared))) or None

    def _described(self, flushed: Future[None], transaction: Transaction) -> tuple[Any, ...] | None:
        flushed.result()
        self._prepared.append(transaction.describe(self._coordinator))
        return self._handle()

    def _commit(self, handle: Any) -> None:
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
        """Let go of the producer; what was not prepared comes again, and is aborted: readers would wait for its end."""
        if self._exactly and self._sender is not None:
            with contextlib.suppress(Exception):  # the broker aborts it once its time is over
                self._sender.submit(self._give_up).result(_GIVE_UP_WITHIN)
        for thread in (self._sender, self._ender):
            if thread is not None:
                thread.end()
        self._outbox = self._flushed = self._ahead = self._sender = self._ender = None
        self._made = {}
        for given, _ in (self._key, self._value):
            if hasattr(given, "serializer"):
                given.close()
        self._coordinator.close()

    def _write(self, keys: Sequence[Any], values: Sequence[Any]) -> Future[None] | None:
        if not len(keys):
            return None
        put = partial(self._put, self._messages(keys, values))
        if self._is_ready(len(keys)) or self._sender is None:
            put()
            return None
        return self._sender.submit(put)

    def _is_ready(self, rows: int) -> bool:
        """Return whether rows can be put without waiting."""
        if self._flushed is not None and not self._flushed.done():
            return False
        if self._outbox is None:
            return not self._exactly or (self._ahead is not None and self._ahead.done())
        return self._outbox.has_room(rows)

    def _put(self, messages: dict[str, list[dict[str, Any]]]) -> None:
        if self._outbox is None:
            self._outbox = self._next()
        for topic, some in messages.items():
            self._outbox.put(topic, some)

    def _next(self) -> Outbox | Transaction:
        if not self._exactly:
            return Outbox("KafkaSink", self._config, SinkError, self.context.logger.warning)
        ahead = self._ahead
        begun = self._begun() if ahead is None or ahead.exception() is not None else ahead.result()
        assert self._ender is not None
        self._ahead = self._ender.submit(self._begun)
        return begun

    def _begun(self) -> Transaction:
        of = ("KafkaSink", self._config, SinkError, self.context.logger.warning)
        return Transaction(*of, f"{self._prefix}{uuid.uuid4().hex}", self._timeout)

    def _give_up(self) -> None:
        outbox, self._outbox = self._outbox, None
        if isinstance(outbox, Transaction):
            outbox.abort(_GIVE_UP_WITHIN)

    def _messages(self, keys: Sequence[Any], values: Sequence[Any]) -> dict[str, list[dict[str, Any]]]:
        if isinstance(self.topic, str):
            return {self.topic: self._of_topic(self.topic, keys, values)}
        found: dict[str, tuple[list[Any], list[Any]]] = {}
        for key, value in zip(keys, values):
            of_topic = found.setdefault(self.topic(key, value), ([], []))
            of_topic[0].append(key)
            of_topic[1].append(value)
        return {topic: self._of_topic(topic, *some) for topic, some in found.items()}

    def _of_topic(self, topic: str, keys: Sequence[Any], values: Sequence[Any]) -> list[dict[str, Any]]:
        try:
            to_key, to_value = self._serializers(topic)
            made: list[dict[str, Any]] = [
                {
                    "key": None if key is None else to_key(key),
                    "value": None if value is None else to_value(value),
                }
                for key, value in zip(keys, values)
            ]
        except SinkError as error:
            raise SinkError(f"KafkaSink, topic {topic!r}: {error}") from error.__cause__
        for name, extra in self._extras.items():
            for message, key, value in zip(made, keys, values):
                message[name] = extra(key, value)
        return made

    def _serializers(self, topic: str) -> tuple[Serializer, Serializer]:
        found = self._made.get(topic)
        if found is None:
            key, value = (
                given.serializer(topic, field) if hasattr(given, "serializer") else made
                for field, given, made in (("key", *self._key), ("value", *self._value))
            )
            found = self._made[topic] = key, value
        return found


def _in_ms(timestamp: Callable[[Any, Any], float | None] | None) -> Callable[[Any, Any], int | None] | None:
    if timestamp is None:
        return None

    def in_ms(key: Any, value: Any) -> int | None:
        at = timestamp(key, value)
        return None if at is None else round(at * 1000)

    return in_ms


def _prefix(lineage: str, unit: str) -> str:
    """The beginning of the transactional ids of a sink, in all runs over a state folder."""
    return f"esault-{lineage}-{unit}-"
