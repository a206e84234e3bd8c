"""Streams of RabbitMQ as a source: each is a split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from esault.connectors.rabbitmq.client import address, ask
from esault.connectors.rabbitmq.stream_messages import OFFSET, Reading, StreamMessages
from esault.errors import SourceError, TopologyError
from esault.sources import deserializers
from esault.topology.arguments import LATEST, listed
from esault.topology.context import Context
from esault.topology.split_source import SplitReader, SplitSource

__all__ = ["RabbitMQStreamSource"]


class RabbitMQStreamSource(SplitSource[Any, Any]):
    """Messages of streams of RabbitMQ, one tuple for each; needs `esault[rabbitmq]`.

    The key is the routing key, or what `key(value, properties)` returns; the value is what the deserializer makes of the body. Each
    stream is a split, so the partitions of a super stream are, too: name them all. A split stays in order, and its position, an offset, is in
    checkpoints: nothing is stored in the server, and others may read the same stream.

    `start`: "first"; "last", the last chunk that was stored; "next", what comes from now on; or an offset, a whole number. `start_time`,
    seconds since the epoch, goes before it: RabbitMQ begins at the chunk of this second, so that some earlier messages may come. Both hold
    where a stream is opened for the first time. `until="end"`: a stream ends at the message that was its last then. `prefetch`: messages that
    the server gives ahead. `metadata=True`: a value is a dict of "value", "headers", "message_id", "timestamp" (seconds since the epoch, or
    None), "routing_key", "exchange", "offset" and "stream". `on_bad_message="skip"` counts messages that the deserializer refuses and leaves
    them out; "fail" ends the run.

    `on_removed`: what follows where messages were removed before they were read (x-max-age, x-max-length-bytes). "warn" says which, counts
    their offsets as `offsets_removed_unread`, a few of which the server uses itself, and goes on; "fail" ends the run.
    """

    extra: ClassVar[str] = "rabbitmq"
    delivery_guarantee: ClassVar[str] = "with checkpoints each message counts once: offsets are in them"

    def __init__(
        self,
        streams: str | Iterable[str],
        url: str = "amqp://guest:guest@localhost:5672/%2F",
        *,
        deserializer: Any = "json",
        key: Callable[[Any, Any], Any] | None = None,
        start: str | int = "first",
        start_time: float | None = None,
        until: str | None = None,
        prefetch: int = 5_000,
        metadata: bool = False,
        on_bad_message: str = "fail",
        on_removed: str = "warn",
    ) -> None:
        who = "RabbitMQStreamSource"
        self.streams: list[str] = listed(streams)
        if not self.streams or not all(isinstance(stream, str) and stream for stream in self.streams):
            raise TopologyError(f"{who}: streams={streams!r}: write a stream's name, or a list of names")
        if len({*self.streams}) < len(self.streams):
            raise TopologyError(f"{who}: streams={streams!r}: a name is there twice; leave one out")
        if key is not None and not callable(key):
            raise TopologyError(f"{who}: key={key!r}: write a function of value and properties")
        if start not in ("first", "last", "next") and (type(start) is not int or start < 0):
            raise TopologyError(
                f'{who}: start={start!r}: write "first", "last", "next", or an offset, which is at least 0'
            )
        if start_time is not None and (type(start_time) not in (int, float) or not 0 <= start_time < LATEST):
            raise TopologyError(f"{who}: start_time={start_time!r}: write seconds since the epoch")
        if until not in (None, "end"):
            raise TopologyError(f'{who}: until={until!r}: write "end", or None for a stream without end')
        if type(prefetch) is not int or not 1 <= prefetch <= 65_535:
            raise TopologyError(f"{who}: prefetch={prefetch!r}: write a number from 1 to 65535")
        if on_bad_message not in ("fail", "skip"):
            raise TopologyError(f'{who}: on_bad_message={on_bad_message!r}: write "fail" or "skip"')
        if on_removed not in ("warn", "fail"):
            raise TopologyError(f'{who}: on_removed={on_removed!r}: write "warn" or "fail"')
        self._url = address(who, url)
        value = deserializers.deserializer(who, "deserializer", deserializer)
        self._reading = Reading(value, key, prefetch, metadata, on_bad_message == "skip", on_removed == "fail")
        self._start: str | int | float = start if start_time is None else float(start_time)
        self.moving_start = self._start in ("next", "last")
        self._ends = until == "end"
        self._say: Callable[[str], None] = lambda line: None

    def check(self) -> None:
        """Raises SourceError where no server answers, it refuses the user, or there is no such stream."""
        for stream in self.streams:
            who = f"RabbitMQStreamSource, stream {stream!r}"

            def question(channel: Any, stream: str = stream, who: str = who) -> None:
                from pika.exceptions import ChannelClosedByBroker

                channel.queue_declare(stream, passive=True)
                channel.basic_qos(prefetch_count=1)
                try:
                    channel.basic_consume(stream, lambda *_: None, arguments={OFFSET: "next"})
                except ChannelClosedByBroker as error:
                    if error.reply_code == 406 and OFFSET in error.reply_text:
                        raise SourceError(f"{who} is a queue: take RabbitMQSource, or correct the name") from None
                    raise
                with suppress(Exception):  # pika gives back what has come meanwhile, which a stream does not take
                    channel.connection.close()

            ask(who, SourceError, self._url, question)

    def open(self, context: Context) -> None:
        """Connect nothing yet: each split does."""
        self._say = context.logger.warning

    def splits(self) -> Sequence[str]:
        """Return the names of the streams."""
        return self.streams

    def open_split(self, id: str, position: Any) -> SplitReader[Any, Any]:
        """Return a reader of this stream from this position on. Raises SourceError."""
        return StreamMessages(self._url, id, position, self._start, self._ends, self._reading, self._say)
