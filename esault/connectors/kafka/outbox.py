"""A producer: messages wait in it until the broker has them; one that is full pushes back, and what fails is raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from esault.connectors.kafka.client import ENDED, Watch, failure, libraries, raise_failure
from esault.errors import EsaultError

__all__ = ["Outbox"]

#: each of these can be overridden in `config`
_DEFAULTS = {
    "enable.idempotence": True,  # retries neither double a message nor change the order
    "acks": "all",
    "partitioner": "murmur2_random",  # as Java's clients: the same key comes to the same partition
    "linger.ms": 5,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 200_000,
}
#: messages that are given to the producer at a time
_AT_ONCE = 10_000


class Outbox:
    """One producer of librdkafka. `say` takes lines for the user, `kind` is the class of the errors that are raised."""

    def __init__(
        self, who: str, config: Mapping[str, Any], kind: type[EsaultError], say: Callable[[str], None]
    ) -> None:
        self._kafka = libraries(who, kind)
        self._who, self._kind = who, kind
        self._watch = Watch(config["bootstrap.servers"], say)
        self._failed: Any = None
        ours = {"error_cb": self._watch, "on_delivery": self._delivered, "delivery.report.only.error": True}
        wanted = {**_DEFAULTS, **config, **ours}
        self._most = int(wanted["queue.buffering.max.messages"])
        try:
            self.producer = self._kafka.Producer(wanted)
        except self._kafka.KafkaException as error:
            raise kind(f"{who}: config: {error.args[0].str()}; correct it") from None

    def put(self, topic: str, messages: list[dict[str, Any]]) -> None:
        """Take messages, as `produce_batch` has them, or with "headers"; waits while the broker takes none. Raises `kind`."""
        for start in range(0, len(messages), _AT_ONCE):
            some = messages[start : start + _AT_ONCE]
            self._make_room(len(some))
            self._give(topic, some)
        self._served(self.producer.poll, 0)
        self._check()

    def has_room(self, count: int) -> bool:
        """Return whether so many messages can be put without waiting."""
        return len(self.producer) + count <= self._most

    def arrived(self) -> bool:
        """Return whether the broker has all, without waiting. Raises as `flush`."""
        self._served(self.producer.poll, 0)
        self._check()
        if len(self.producer):
            return False
        self._watch.answered()
        return True

    def flush(self) -> None:
        """Wait until the broker has all. Raises `kind` where it refuses a message, or was away for message.timeout.ms."""
        waiting = len(self.producer)
        while left := self._served(self.producer.flush, 1.0):
            self._check()
            waiting = self._looked(waiting, left)
        self._check()
        self._watch.answered()

    def _make_room(self, count: int) -> None:
        waiting = len(self.producer)
        while (left := len(self.producer)) + count > self._most and left:
            self._served(self.producer.poll, 0.05)
            self._check()
            waiting = self._looked(waiting, left)

    def _looked(self, waiting: int, left: int) -> int:
        if left < waiting:
            self._watch.answered()
        return left

    def _give(self, topic: str, messages: list[dict[str, Any]]) -> None:
        try:
            # All or none have them; many at once can have neither.
            if "headers" in messages[0] or "timestamp" in messages[0]:
                for message in messages:
                    said = {name: each for name, each in message.items() if each is not None}
                    self.producer.produce(topic, **said)
            elif self.producer.produce_batch(topic, messages) != len(messages):
                wrong = next(message["_error"] for message in messages if "_error" in message)
                if wrong.name() in ENDED:  # the reason is with those that were given before
                    self._served(self.producer.flush, 1.0)
                    self._check()
                raise failure(self._kind, f"{self._who}: {topic} does not take a message", wrong)
        except self._kafka.KafkaException as error:
            raise_failure(self._kind, self._who, error.args[0])
        except (TypeError, ValueError, OverflowError) as error:
            raise self._kind(
                f"{self._who}: {topic} does not take a message: {error}; headers are texts or bytes by name, a timestamp and a partition numbers"
            ) from None
        except BufferError:
            raise self._kind(
                f'{self._who}: the messages that wait are too large together; raise "queue.buffering.max.kbytes" in config'
            ) from None

    def _served(self, call: Callable[[float], int], seconds: float) -> int:
        """Let the client call back. Raises `kind` where it has come to an end."""
        try:
            return call(seconds)
        except self._kafka.KafkaException as error:
            raise_failure(self._kind, self._who, error.args[0])
        except SystemError as error:  # confluent-kafka raises in the midst of a callback
            if isinstance(error.__cause__, self._kafka.KafkaException):
                raise_failure(self._kind, self._who, error.__cause__.args[0])
            if "without setting an exception" not in str(error):
                raise
            # what it raised is lost on the way: this happens where the producer has come to an end
            ended = self._kafka.KafkaError(self._kafka.KafkaError._FATAL, "the producer has come to an end")
            raise_failure(self._kind, self._who, ended)

    def _delivered(self, error: Any, message: Any) -> None:
        # one message that fails takes with it all others of a transaction: what they say is no reason
        if error is not None and (self._failed is None or self._failed[1].name() in ENDED):
            self._failed = (message.topic(), error)

    def _check(self) -> None:
        if self._watch.refused is not None:
            raise failure(self._kind, self._who, self._watch.refused)
        if self._failed is not None and self._failed[1].name() in ENDED:
            self._served(self.producer.flush, 1.0)
        if self._failed is not None:
            (topic, error), self._failed = self._failed, None
            raise failure(self._kind, f"{self._who}: {topic} does not take a message", error)
