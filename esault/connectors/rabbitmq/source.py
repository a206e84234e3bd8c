"""Queues of RabbitMQ as a source that is acknowledged."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from esault.connectors.rabbitmq.client import address, ask
from esault.connectors.rabbitmq.link import Link
from esault.errors import EsaultError, SourceError, TopologyError
from esault.sources import deserializers
from esault.topology.context import Context
from esault.topology.spout import EndOfStream, Spout

__all__ = ["RabbitMQSource"]

#: seconds between two questions how long the queue is
_LOOK_EVERY = 2.0
#: where `until="empty"` waits for the answer
_LOOK_EVERY_AT_THE_END = 0.05


class RabbitMQSource(Spout[Any, Any]):
    """Messages of a queue, one tuple for each, acknowledged when they are durable; needs `esault[rabbitmq]`.

    The key is the routing key, or what `key(value, properties)` returns; the value is what the deserializer makes of the body. Several
    sub-units are competing consumers. `prefetch`: messages that a sub-unit may hold without having acknowledged them, 65 535 at
    most: with checkpoints that is as many in each interval. `metadata=True`: a value is a dict of "value", "headers", "message_id",
    "timestamp" (seconds since the epoch, or None), "routing_key", "exchange" and "redelivered". `on_bad_message="reject"`: a message that the
    deserializer refuses goes to the queue's dead-letter exchange, or is dropped where it has none; it is counted.
    `unique_ids=True`: the publishers give each message a message_id that no other has: with checkpoints one that comes again
    is passed over; there is one sub-unit then, since what one has kept another does not know. `until="empty"` ends where no message is ready.

    A message that was given and not acknowledged when a process died, or the connection broke, comes again.
    """

    parallel: ClassVar[bool] = True
    seekable = False
    extra: ClassVar[str] = "rabbitmq"
    delivery_guarantee: ClassVar[str] = (
        "at least once: acknowledged when durable; with checkpoints and unique_ids=True once"
    )

    def __init__(
        self,
        queue: str,
        url: str = "amqp://guest:guest@localhost:5672/%2F",
        *,
        deserializer: Any = "json",
        key: Callable[[Any, Any], Any] | None = None,
        prefetch: int = 10_000,
        metadata: bool = False,
        on_bad_message: str = "fail",
        unique_ids: bool = False,
        until: str | None = None,
    ) -> None:
        if not isinstance(queue, str) or not queue:
            raise TopologyError(f"RabbitMQSource: queue={queue!r}: write its name")
        if key is not None and not callable(key):
            raise TopologyError(f"RabbitMQSource: key={key!r}: write a function of value and properties")
        if type(prefetch) is not int or not 1 <= prefetch <= 65_535:
            raise TopologyError(f"RabbitMQSource: prefetch={prefetch!r}: write a number from 1 to 65535")
        if on_bad_message not in ("fail", "reject"):
            raise TopologyError(f'RabbitMQSource: on_bad_message={on_bad_message!r}: write "fail" or "reject"')
        if until not in (None, "empty"):
            raise TopologyError(f'RabbitMQSource: until={until!r}: write "empty", or None for a stream without end')
        self.queue, self._url = queue, address("RabbitMQSource", url)
        self._value = deserializers.deserializer("RabbitMQSource", "deserializer", deserializer)
        self._key, self._prefetch, self._metadata = key, prefetch, metadata
        self._rejects, self._unique, self._ends = on_bad_message == "reject", unique_ids, until == "empty"
        self._who = f"RabbitMQSource, queue {queue!r}"
        if unique_ids:
            self.parallel = False  # type: ignore[misc]  # of this one
            self.alone = (
                f"{self._who}: unique_ids=True passes over what the same sub-unit has kept, and the server gives a message again to any: take one "
                "sub-unit, and put the parallelism into the units behind it; or leave unique_ids out"
            )
        self._consumer: _Consumer | None = None
        self._place: tuple[str, int] = ("", 0)
        self._ids: list[str] | None = None
        self._bad = 0
        self._said_full = False

    def check(self) -> None:
        """Raises SourceError where no server answers, it refuses the user, or there is no such queue."""
        ask(self._who, SourceError, self._url, lambda channel: channel.queue_declare(self.queue, passive=True))

    def open(self, context: Context) -> None:
        """Connect, and begin to consume."""
        self.context = context
        every = _LOOK_EVERY_AT_THE_END if self._ends else _LOOK_EVERY
        self._consumer = _Consumer(self._who, self._url, self.queue, self._prefetch, every, context.logger.warning)

    def read(self, limit: int) -> Sequence[tuple[Any, Any]]:
        """Return what has come. Raises SourceError where the queue is gone."""
        consumer = self._consumer
        assert consumer is not None
        rows, ids = [], []
        token, messages = consumer.take(limit)
        for method, properties, body in messages:
            try:
                value = self._value(body)
                key = method.routing_key if self._key is None else self._key(value, properties)
            except Exception as wrong:
                if not self._rejects:
                    raise SourceError(
                        f"{self._who}: a message with routing key {method.routing_key!r}: {type(wrong).__name__}: {wrong}; take another "
                        'deserializer, or have such messages rejected with on_bad_message="reject"'
                    ) from wrong
                self._bad += 1
                if self._bad == 1:
                    place = f"{self._who}, a message with routing key {method.routing_key!r}"
                    self.context.logger.warning(deserializers.told_bad(place, wrong, "rejected"))
                consumer.reject(token, method.delivery_tag)
                continue
            rows.append((key, _described(value, method, properties) if self._metadata else value))
            ids.append(f"id:{properties.message_id}" if properties.message_id else f"{token}:{method.delivery_tag}")
            self._place = (token, method.delivery_tag)
        self._ids = ids
        if not messages and limit > 0:
            if self._ends and consumer.empty():
                raise EndOfStream
            if not self._said_full and consumer.full():
                self._said_full = True
                self.context.logger.warning(
                    f"all {self._prefetch:,} messages that prefetch allows wait for their acknowledgement, which comes when their rows are "
                    "durable: raise prefetch, or take checkpoints more often"
                )
        return rows

    def held_back(self) -> bool:
        """Return whether the server gives no more before some messages are acknowledged."""
        return self._consumer is not None and self._consumer.full()

    def position(self) -> tuple[str, int]:
        """Return the connection and the number of the last message in it."""
        return self._place

    def commit(self, position: Any) -> None:
        """Acknowledge all up to there, where it is of this connection: what one before had read comes again."""
        if self._consumer is not None:
            self._consumer.acknowledge(*position)

    def row_ids(self) -> Sequence[str] | None:
        """Return the message ids of the last read, with `unique_ids`."""
        return self._ids if self._unique else None

    def lag(self) -> int | None:
        """Return the number of messages that are ready, as it was some seconds ago, and of those that were not read."""
        return None if self._consumer is None else self._consumer.lag()

    def counters(self) -> dict[str, int]:
        """Return how many messages were rejected."""
        return {"bad_messages_rejected": self._bad} if self._rejects else {}

    def close(self) -> None:
        """Disconnect; what is not acknowledged comes again."""
        if self._consumer is not None:
            self._consumer.close()


def _described(value: Any, method: Any, properties: Any) -> dict[str, Any]:
    return {
        "value": value,
        "headers": dict(properties.headers or ()),
        "message_id": properties.message_id,
        "timestamp": properties.timestamp,
        "routing_key": method.routing_key,
        "exchange": method.exchange,
        "redelivered": method.redelivered,
    }


class _Consumer:
    """Messages that have come from a queue and were not read yet; they are known by connection and number."""

    def __init__(self, who: str, url: str, queue: str, prefetch: int, every: float, say: Callable[[str], None]) -> None:
        self._who, self._queue, self._prefetch, self._every, self._say = who, queue, prefetch, every, say
        self._lock = threading.Lock()
        self._waiting: deque[Any] = deque()
        self._token = ""
        self._channel: Any = None
        self._error: EsaultError | None = None
        #: messages that were read and are not acknowledged
        self._open: deque[int] = deque()
        self._ready_count: int | None = None
        #: answers in a row that none is ready, with no message between: the first may overtake messages
        self._none = 0
        self._said_again = False
        self._link = Link(who, url, SourceError, say, ready=self._ready, lost=self._lost, failed=self._failed)
        self._link.start()

    # the data loop ----------------------------------------------------------------------------------

    def take(self, limit: int) -> tuple[str, list[Any]]:
        """Return the name of the connection, and messages of it."""
        with self._lock:
            if self._error is not None and not self._waiting:
                raise self._error
            taken = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
            self._open.extend(message[0].delivery_tag for message in taken)
            return self._token, taken

    def acknowledge(self, token: str, tag: int) -> None:
        with self._lock:
            if token != self._token or self._channel is None:
                return
            last = 0
            while self._open and self._open[0] <= tag:
                last = self._open.popleft()
            channel = self._channel
        if last:
            self._call(channel, lambda: channel.basic_ack(last, multiple=True))

    def reject(self, token: str, tag: int) -> None:
        with self._lock:
            if token != self._token or self._channel is None:
                return
            self._open.remove(tag)
            channel = self._channel
        self._call(channel, lambda: channel.basic_reject(tag, requeue=False))

    def empty(self) -> bool:
        with self._lock:
            return self._none > 1 and not self._waiting

    def full(self) -> bool:
        with self._lock:
            return len(self._open) >= self._prefetch

    def lag(self) -> int | None:
        with self._lock:
            return None if self._ready_count is None else self._ready_count + len(self._waiting)

    def close(self) -> None:
        self._link.close()

    def _call(self, channel: Any, function: Callable[[], None]) -> None:
        self._link.call(lambda: function() if channel.is_open else None)

    # the thread of the connection -------------------------------------------------------------------

    def _ready(self, channel: Any) -> None:
        with self._lock:
            self._token, self._channel = uuid.uuid4().hex[:12], channel
            self._ready_count, self._none = None, 0
        channel.add_on_cancel_callback(self._cancelled)
        channel.basic_qos(prefetch_count=self._prefetch)
        channel.basic_consume(self._queue, self._come, callback=lambda _: self._look(channel))

    def _lost(self) -> None:
        with self._lock:  # the server gives them again
            self._waiting.clear()
            self._open.clear()
            self._token, self._channel, self._ready_count, self._none = "", None, None, 0

    def _failed(self, error: EsaultError) -> None:
        with self._lock:
            self._error = error

    def _cancelled(self, frame: Any) -> None:
        self._failed(SourceError(f"{self._who} was deleted while it was read; make it anew, and run again"))

    def _come(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        with self._lock:
            self._waiting.append((method, properties, body))
            self._none = 0
            if self._ready_count:
                self._ready_count -= 1
        if method.redelivered and not self._said_again:
            self._said_again = True
            self._say("messages come again that had been given and not acknowledged (redelivered)")

    def _look(self, channel: Any) -> None:
        if channel.is_open:
            channel.queue_declare(self._queue, passive=True, callback=lambda answer: self._looked(channel, answer))

    def _looked(self, channel: Any, answer: Any) -> None:
        with self._lock:
            if channel is self._channel:
                self._ready_count = answer.method.message_count
                self._none = 0 if self._ready_count else self._none + 1
        self._link.later(self._every, lambda: self._look(channel))
