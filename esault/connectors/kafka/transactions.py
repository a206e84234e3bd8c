"""Transactions of Kafka that outlive the process that began them: any other can commit or abort them.

A transaction is prepared when the broker has all its messages and it is still open. Its handle names the transactional id, and the
producer's id and epoch, which librdkafka does not tell: the coordinator is asked for them (DescribeTransactions, KIP-664).
A process that has the handle ends it by a request of its own (EndTxn). librdkafka's `init_transactions` would abort it.
Each transaction has an id of its own: of one that is used again it could not be said which transaction its state means.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from esault.connectors.kafka.client import libraries, raise_failure
from esault.connectors.kafka.outbox import Outbox
from esault.errors import EsaultError

__all__ = ["Coordinator", "Prepared", "Transaction"]

#: seconds for which a coordinator that is away, or busy with the transaction, is asked again
PATIENCE = 60.0

#: settings of librdkafka, and what kafka-python calls them
_NAMES = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
_COMMITTED = {"PrepareCommit", "CompleteCommit"}

T = TypeVar("T")


class Prepared(NamedTuple):
    """The handle of a transaction, and the place of its first message, by which a reader can tell whether it was committed."""

    id: str
    producer: int
    epoch: int
    topic: str
    partition: int
    offset: int


class Transaction:
    """One open transaction of one producer. Messages are seen when a `Coordinator` has committed what `prepare` returns."""

    def __init__(
        self,
        who: str,
        config: Mapping[str, Any],
        kind: type[EsaultError],
        say: Callable[[str], None],
        id: str,
        timeout: float,
    ) -> None:
        self._id = id
        kafka = libraries(who, kind)
        ours = {"transactional.id": id, "transaction.timeout.ms": round(timeout * 1000)}
        self._outbox = Outbox(who, {**config, **ours}, kind, say)
        try:
            self._outbox.producer.init_transactions(PATIENCE)
            self._outbox.producer.begin_transaction()
        except kafka.KafkaException as error:
            raise_failure(kind, f"{who}: no transaction can be begun", error.args[0])

    def put(self, topic: str, messages: list[dict[str, Any]]) -> None:
        """As `Outbox.put`."""
        self._outbox.put(topic, messages)

    def has_room(self, count: int) -> bool:
        """As `Outbox.has_room`."""
        return self._outbox.has_room(count)

    def flush(self) -> None:
        """As `Outbox.flush`."""
        self._outbox.flush()

    def abort(self, seconds: float) -> None:
        """Have the broker forget all messages of it, within so many seconds. Raises KafkaException where it does not answer."""
        self._outbox.producer.purge()
        self._outbox.producer.abort_transaction(seconds)

    def describe(self, coordinator: Coordinator) -> Prepared:
        """Return the handle, once all has been flushed; at least one message has been put. Nothing may be put after it."""
        return coordinator.describe(self._id)


class Coordinator:
    """Ends transactions of others. Its client connects when it is first asked."""

    def __init__(self, who: str, config: Mapping[str, Any], kind: type[EsaultError]) -> None:
        self._who, self._config, self._kind = who, config, kind
        self._client: Any = None

    def check(self) -> None:
        """Raise where kafka-python is not installed."""
        self._library()

    def describe(self, id: str) -> Prepared:
        """Return the handle of an open transaction that has messages. Raises where the broker has aborted it."""
        found = self._patiently(lambda client: client.describe_transactions([id])[id])
        if not found.topic_partitions:
            raise self._kind(
                f"{self._who}: the broker has aborted a transaction before its checkpoint was complete ({id}): it was open for "
                f"longer than its transaction.timeout.ms allows. --resume goes on from the checkpoint before; give it a greater "
                f"transaction_timeout, or take checkpoints more often"
            )
        first = min(found.topic_partitions)
        producers = self._patiently(lambda client: client.describe_producers([first])[first])
        offset = next(
            each.current_transaction_start_offset
            for each in producers.active_producers
            if each.producer_id == found.producer_id
        )
        return Prepared(id, found.producer_id, found.producer_epoch, first.topic, first.partition, offset)

    def commit(self, prepared: Prepared) -> None:
        """Commit it, unless that has been done. Raises where the broker has aborted it."""
        self._patiently(lambda client: self._commit(client, prepared))

    def abort_all(self, prefix: str, but: Collection[str]) -> None:
        """Abort the transactions whose ids begin so, and shut out their producers, `but` these."""
        states = ["Empty", "Ongoing"]  # an empty one may have a producer whose requests are on their way
        listed = self._patiently(lambda client: client.list_transactions(state_filters=states))
        for each in (each for of_broker in listed.values() for each in of_broker):
            if each.transactional_id.startswith(prefix) and each.transactional_id not in but:
                self._patiently(functools.partial(self._fence, id=each.transactional_id))

    def close(self) -> None:
        """Let go of the connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _commit(self, client: Any, prepared: Prepared) -> None:
        errors = self._library().errors
        try:
            found = client.describe_transactions([prepared.id])[prepared.id]
        except (
            errors.TransactionalIdNotFoundError
        ):  # forgotten: it ended longer than transactional.id.expiration.ms ago
            found = None
        if found is not None and found.state.value in _COMMITTED:
            return
        ours = found is not None and (found.producer_id, found.producer_epoch) == (prepared.producer, prepared.epoch)
        if ours and found.state.value == "Ongoing":
            self._end(client, prepared)
        elif not self._is_seen(prepared):
            state = "forgotten" if found is None else found.state.value
            raise self._kind(
                f"{self._who}: the broker has aborted a transaction that belongs to the checkpoint ({prepared.id}: {state}), "
                f"and its rows are lost: it was open for longer than its transaction.timeout.ms allows. Run from the beginning "
                f"(--restart) or from an older state folder, and resume sooner or with a greater transaction_timeout"
            )

    def _end(self, client: Any, prepared: Prepared) -> None:
        from kafka.protocol.producer.transaction import EndTxnRequest

        # Of version 5 a commit would bump the epoch, and the handle would mean nothing any more.
        request = EndTxnRequest(
            transactional_id=prepared.id,
            producer_id=prepared.producer,
            producer_epoch=prepared.epoch,
            committed=True,
            max_version=4,
        )
        self._ask(client, prepared.id, request)

    def _fence(self, client: Any, id: str) -> None:
        from kafka.protocol.producer.transaction import InitProducerIdRequest

        request = InitProducerIdRequest(transactional_id=id, transaction_timeout_ms=1000, max_version=4)
        self._ask(client, id, request)

    def _ask(self, client: Any, id: str, request: Any) -> None:
        """Send a request to the coordinator of this id. Raises the error that it answers."""
        from kafka.protocol.metadata import CoordinatorType

        async def sent() -> Any:
            node = await client._find_coordinator_id(id, CoordinatorType.TRANSACTION)
            return await client._manager.send(request, node_id=node)

        error = self._library().errors.for_code(client._manager.run(sent).error_code)
        if error is not self._library().errors.NoError:
            raise error(id)

    def _is_seen(self, prepared: Prepared) -> bool:
        """Return whether its first message is there for readers of what is committed, or was, and is too old to be there."""
        kafka = libraries(self._who, self._kind)
        consumer = kafka.Consumer(
            {
                **self._config,
                "group.id": "esault-looks",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
            }
        )
        place = kafka.TopicPartition(prepared.topic, prepared.partition, prepared.offset)
        until = time.monotonic() + PATIENCE
        try:
            if consumer.get_watermark_offsets(place, timeout=PATIENCE)[0] > prepared.offset:
                return True
            consumer.assign([place])
            while time.monotonic() < until:
                message = consumer.poll(1.0)
                if message is None or (message.error() is not None and message.offset() <= prepared.offset):
                    continue  # an older transaction is open: nothing behind it can be seen yet
                return message.error() is None and bool(message.offset() == prepared.offset)
        except kafka.KafkaException as error:
            raise_failure(self._kind, self._who, error.args[0])
        finally:
            consumer.close()
        raise self._kind(
            f"{self._who}: whether {prepared.id} was committed cannot be told: an older transaction is open in {prepared.topic}, "
            f"partition {prepared.partition}; end it (kafka-transactions.sh find-hanging) and resume"
        ) from TimeoutError(f"{PATIENCE:g} s")

    def _patiently(self, ask: Callable[[Any], T]) -> T:
        """Ask until the answer is no error that passes."""
        errors = self._library().errors
        until, pause = time.monotonic() + PATIENCE, 0.002
        while True:
            try:
                if self._client is None:
                    self._client = self._connected()
                return ask(self._client)
            except (errors.KafkaError, OSError) as error:
                # Another may have ended it: then the state, which is looked at again, decides.
                ended = (errors.InvalidProducerEpochError, errors.ProducerFencedError, errors.InvalidTxnStateError)
                passing = isinstance(error, (OSError, *ended)) or error.retriable
                if not passing or time.monotonic() > until:
                    said = self._kind(f"{self._who}: the coordinator of transactions refuses: {error}")
                    raise said from ConnectionError(str(error)) if passing else error
                if not isinstance(error, errors.ConcurrentTransactionsError):
                    self.close()  # it may be another broker by now
                time.sleep(pause)
                pause = min(1.0, pause * 2)

    def _connected(self) -> Any:
        config = {ours: self._config[name] for name, ours in _NAMES.items() if name in self._config}
        if (
            str(self._config.get("ssl.endpoint.identification.algorithm", "")).lower() == "none"
            or str(self._config.get("enable.ssl.certificate.verification", "")).lower() == "false"
        ):
            config["ssl_check_hostname"] = False
        servers = self._config["bootstrap.servers"].split(",")
        return self._library().KafkaAdminClient(bootstrap_servers=servers, bootstrap_timeout_ms=5000, **config)

    def _library(self) -> Any:
        try:
            import kafka
            import kafka.errors
        except ImportError:
            raise self._kind(f"{self._who}: exactly-once needs kafka-python: pip install 'esault[kafka]'") from None
        logger = logging.getLogger("kafka")
        if logger.level == logging.NOTSET:  # else each try to connect is two lines on the user's terminal
            logger.setLevel(logging.CRITICAL)
        return kafka
