"""Exchanges and queues of RabbitMQ as a sink."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar

from esault.connectors.packed_messages import MessagePacker, unpacked
from esault.connectors.rabbitmq.client import LONGEST, address, ask, is_short, library
from esault.connectors.rabbitmq.publisher import MARKER_OPTIONS, Message, Publisher
from esault.errors import SinkError, TopologyError
from esault.payload.remedy import type_name
from esault.sinks.serializers import serializer
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo, Sink

__all__ = ["RabbitMQSink"]

_CONTENT = {"json": "application/json", "text": "text/plain", "bytes": "application/octet-stream"}


class RabbitMQSink(Sink):
    """Messages of a queue or an exchange, one for each row; needs `esault[rabbitmq]`.

    `RabbitMQSink("counts")` writes to a queue; `declare=True` makes it, durable, where it is missing. `RabbitMQSink(exchange="orders",
    routing_key=...)` writes to an exchange; `routing_key` is text, or a function `(key, value) -> text`. `value_serializer`: "json", "text",
    "bytes", or a function from a value to bytes. `properties`: a function `(key, value)` that returns properties of the message by pika's
    names, such as `{"headers": {...}, "priority": 5}`. Messages are persistent. A message that no queue takes ends the run;
    `on_unroutable="drop"` lets the server drop it.

    Rows are published when they are committed, and confirmed by the server. A message has a `message_id` that follows from its row and the
    state folder: a repeat has the same. Rows wait in memory for the checkpoint, and are in it.
    """

    wants_id: ClassVar[bool] = True
    extra: ClassVar[str] = "rabbitmq"
    delivery_guarantee: ClassVar[str] = "at least once: a crash within a commit repeats rows, with the same message_id"

    def __init__(
        self,
        queue: str | None = None,
        url: str = "amqp://guest:guest@localhost:5672/%2F",
        *,
        exchange: str = "",
        routing_key: str | Callable[[Any, Any], str] | None = None,
        value_serializer: Any = "json",
        properties: Callable[[Any, Any], Mapping[str, Any] | None] | None = None,
        declare: bool = False,
        on_unroutable: str = "fail",
    ) -> None:
        if queue is not None and (exchange or routing_key is not None):
            raise TopologyError(
                f"RabbitMQSink: queue={queue!r} and an exchange or routing_key are given: write the queue, or the others"
            )
        if queue is None and (not exchange or routing_key is None):
            raise TopologyError('RabbitMQSink: write a queue, or exchange="..." and routing_key=...')
        if declare and queue is None:
            raise TopologyError("RabbitMQSink: declare=True makes a queue: write its name in place of an exchange")
        if properties is not None and not callable(properties):
            raise TopologyError(f"RabbitMQSink: properties={properties!r}: write a function of key and value")
        if on_unroutable not in ("fail", "drop"):
            raise TopologyError(f'RabbitMQSink: on_unroutable={on_unroutable!r}: write "fail" or "drop"')
        self._url = address("RabbitMQSink", url)
        self._queue, self._exchange, self._declare = queue, exchange, declare
        self._routing_key: Any = queue if queue is not None else routing_key
        self._drops = on_unroutable == "drop"
        self._value = serializer("RabbitMQSink", "value_serializer", value_serializer)
        content = _CONTENT.get(value_serializer) if isinstance(value_serializer, str) else None
        self._fixed: dict[str, Any] = {"delivery_mode": 2, **({"content_type": content} if content else {})}
        self._properties = properties
        self._who = f"RabbitMQSink, {f'queue {queue!r}' if queue is not None else f'exchange {exchange!r}'}"
        self._publisher: Publisher | None = None
        self._say: Callable[[str], None] = lambda line: None
        self._begin_again("", "", False)

    def _begin_again(self, lineage: str, unit: str, kept: bool) -> None:
        #: the queue that says what has been published: another process may have to know
        self._marker = f"esault-{lineage}-{unit}" if kept else None
        self._name = f"{lineage}-{unit}-"
        self._messages: list[Message] = []
        self._packer = MessagePacker(self._who, kept)
        #: handles of this object that are not committed
        self._mine: set[str] = set()

    def destination(self) -> str:
        """Return where rows go, for people."""
        return self._who.partition(", ")[2]

    def check(self) -> None:
        """Raises SinkError where no server answers, it refuses the user, or there is no such queue or exchange."""

        def question(channel: Any) -> None:
            if self._queue is None:
                channel.exchange_declare(self._exchange, passive=True)
            elif self._declare:
                from pika.exceptions import ChannelClosedByBroker

                try:
                    channel.queue_declare(self._queue, passive=True)
                except ChannelClosedByBroker as error:
                    if error.reply_code != 404:
                        raise
                    channel.connection.channel().queue_declare(self._queue, durable=True)
            else:
                channel.queue_declare(self._queue, passive=True)

        ask(self._who, SinkError, self._url, question)

    def begin(self, run: RunInfo) -> None:
        """Make the queue of markers, with checkpoints."""
        self._begin_again(run.lineage, run.unit, run.lineage != run.run)
        if self._marker is not None:
            marker = self._marker
            ask(
                self._who,
                SinkError,
                self._url,
                lambda channel: channel.queue_declare(marker, durable=True, arguments=MARKER_OPTIONS),
            )

    def open(self, context: Context) -> None:
        """Nothing yet: the first commit connects."""
        self.context = context
        self._say = context.logger.warning
        self._begin_again(context.lineage, context.unit, context.lineage != context.run)

    def write(self, rows: Sequence[Row]) -> Future[None] | None:
        """Make messages of rows; what is returned is done when the server has taken enough of those before."""
        self._messages += map(self._message, rows)
        return None if self._publisher is None else self._publisher.room()

    def _message(self, row: Row) -> Message:
        key, value = row.key, row.value
        try:
            body = self._value(value)
        except SinkError as error:
            raise SinkError(f"{self._who}: {error}") from None
        name = self._name + str(row.id)
        named = {**self._fixed, "message_id": name if is_short(name) else _shortened(name)}
        if self._properties is not None:
            named.update(self._properties(key, value) or {})
            self._check(key, named)
        routing_key = self._routing_key if isinstance(self._routing_key, str) else self._routed(key, value)
        return self._exchange, routing_key, b"" if body is None else body, named

    def _check(self, key: Any, named: Mapping[str, Any]) -> None:
        """Raise SinkError for properties that cannot be sent: in a checkpoint they would end each run that goes on from it."""
        pika = library(self._who, SinkError)
        try:
            pika.BasicProperties(**named).encode()
        except pika.exceptions.UnsupportedAMQPFieldException as error:
            wrong = error.args[-1]
            raise SinkError(
                f"{self._who}: the properties of key {key!r} cannot be sent: pika has no form for {wrong!r}, of type {type_name(type(wrong))}; "
                "write it as text"
            ) from None
        except Exception as error:
            raise SinkError(
                f"{self._who}: the properties of key {key!r} cannot be sent: {type(error).__name__}: {error}; return those that pika knows"
            ) from None

    def _routed(self, key: Any, value: Any) -> str:
        found = self._routing_key(key, value)
        if not isinstance(found, str) or not is_short(found):
            raise SinkError(
                f"{self._who}: {found!r}, made of key {key!r}, is no routing key: return a text of {LONGEST} bytes at most"
            )
        return found

    def prepare(self, epoch: int) -> Any:
        """Return a token and the messages, which the checkpoint keeps."""
        messages, self._messages = self._messages, []
        if not messages:
            return None
        token, handle = self._packer.handle(messages)
        self._mine.add(token)
        return handle

    def commit(self, epoch: int, handle: Any) -> Future[None] | None:
        """Publish messages, where no process has; what is returned is done when the server has confirmed all."""
        if handle is None:
            return None
        token, kept = handle
        if token not in self._mine and self._is_published(token):
            return None
        self._mine.discard(token)
        if self._publisher is None:
            self._publisher = Publisher(self._who, self._url, self._say, self._marker, self._drops)
        messages = unpacked(kept)
        return self._publisher.publish((tuple(message) for message in messages), token)

    def _is_published(self, token: str) -> bool:
        if self._marker is None:
            return False
        marker, found = self._marker, []

        def question(channel: Any) -> None:
            channel.queue_declare(marker, durable=True, arguments=MARKER_OPTIONS)
            while True:  # none is acknowledged: they stay
                method, _, body = channel.basic_get(marker)
                if method is None:
                    return
                found.append(body)

        ask(self._who, SinkError, self._url, question)
        return token.encode() in found

    def end(self, ok: bool) -> None:
        """Disconnect."""
        self.close()

    def close(self) -> None:
        """Disconnect; what was not committed comes again."""
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.close()
        self._packer.close()


def _shortened(name: str) -> str:
    """Return a short name for a long one, always the same: a row may be named by what a client has sent with it."""
    return hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
