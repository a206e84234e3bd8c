"""Streams of RabbitMQ as a sink: what is published twice the server drops, by publisher and publishing id."""

from __future__ import annotations

import struct
import uuid
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar

from esault.connectors.packed_messages import MessagePacker, unpacked
from esault.connectors.rabbitmq.client import LONGEST, is_short
from esault.connectors.rabbitmq.stream_client import StreamAddress, StreamClient, StreamRefusedError, stream_failure
from esault.connectors.rabbitmq.stream_publisher import StreamPublisher
from esault.errors import SinkError, TopologyError
from esault.sinks.serializers import serializer
from esault.topology.arguments import listed
from esault.topology.context import Context
from esault.topology.sink import Row, Sink

__all__ = ["RabbitMQStreamSink"]

_CONTENT = {"json": b"application/json", "text": b"text/plain", "bytes": b"application/octet-stream"}
#: rows that are published and not confirmed, or wait for that, before no more are taken
_FULL = 50_000


class RabbitMQStreamSink(Sink):
    """Messages of streams of RabbitMQ, one for each row; needs no library, and the server's plugin for streams.

    `RabbitMQStreamSink("counts")` writes to a stream. Of a list of streams, such as the partitions of a super stream, each row goes to one by
    its key: rows of a key stay in order; or to the one that `route(key, value)` names. `declare=True` makes streams that are missing.
    `url` is "rabbitmq-stream://user:password@host:5552/%2F", or rabbitmq-stream+tls. `value_serializer`: "json", "text", "bytes", or a
    function from a value to bytes. The key, as text, is the message's routing key, for readers by AMQP 0-9-1. `headers`: a function
    `(key, value)` that returns texts by name.

    Rows are published when they are committed, and confirmed by the server. A sub-unit is a publisher with a name, and its messages have
    publishing ids in order, which are in the checkpoint: of what is published again after a crash the server drops what it has.
    """

    delivery_guarantee: ClassVar[str] = (
        "exactly once with checkpoints: the server drops what a publisher of this name has published"
    )

    def __init__(
        self,
        stream: str | Iterable[str],
        url: str = "rabbitmq-stream://guest:guest@localhost:5552/%2F",
        *,
        value_serializer: Any = "json",
        route: Callable[[Any, Any], str] | None = None,
        headers: Callable[[Any, Any], Mapping[str, str]] | None = None,
        declare: bool = False,
    ) -> None:
        who = "RabbitMQStreamSink"
        self.streams: list[str] = listed(stream)
        if not self.streams or not all(isinstance(each, str) and each for each in self.streams):
            raise TopologyError(f"{who}: stream={stream!r}: write a stream's name, or a list of names")
        for name, given in (("route", route), ("headers", headers)):
            if given is not None and not callable(given):
                raise TopologyError(f"{who}: {name}={given!r}: write a function of key and value")
        self._address = StreamAddress.of(who, url)
        self._route, self._headers, self._declare = route, headers, declare
        self._value = serializer(who, "value_serializer", value_serializer)
        self._content = _CONTENT.get(value_serializer) if isinstance(value_serializer, str) else None
        self._who = f"{who}, stream {self.streams[0]!r}{'' if len(self.streams) == 1 else ' and others'}"
        self._say: Callable[[str], None] = lambda line: None
        self._publisher: StreamPublisher | None = None
        self._begin_again("", False)

    def _begin_again(self, lineage: str, kept: bool) -> None:
        # of each life of a sub-unit another one: two that write side by side have ids of their own
        self._reference = f"esault-{lineage}-{uuid.uuid4().hex[:16]}"
        self._next = 1
        self._messages: dict[str, list[bytes]] = {}
        self._packer = MessagePacker(self._who, kept)
        #: commits that may not be confirmed yet, and their rows
        self._open: deque[tuple[Future[None], int]] = deque()

    def destination(self) -> str:
        """Return where rows go, for people."""
        return self._who.partition(", ")[2]

    def check(self) -> None:
        """Raises SinkError where no server answers, it refuses the user, or there is no such stream."""
        try:
            client = StreamClient(self._address)
            try:
                missing = client.missing(self.streams)
                if missing and not self._declare:
                    raise StreamRefusedError(2, f"stream {missing[0]!r}")
                for stream in missing:
                    client.create(stream)
            finally:
                client.close()
        except (OSError, StreamRefusedError) as error:
            raise stream_failure(SinkError, self._who, self._address, error) from error

    def open(self, context: Context) -> None:
        """Nothing yet: the first commit connects."""
        self.context = context
        self._say = context.logger.warning
        self._begin_again(context.lineage, context.lineage != context.run)

    def write(self, rows: Sequence[Row]) -> Future[None] | None:
        """Make messages of rows; what is returned is done when the server has taken enough of those before."""
        for row in rows:
            try:
                body = self._value(row.value)
            except SinkError as error:
                raise SinkError(f"{self._who}: {error}") from None
            headers = {} if self._headers is None else self._headers(row.key, row.value)
            if headers or len(str(row.key)) > LONGEST // 4:
                self._check_short(row.key, headers or ())
            message = _encoded(b"" if body is None else body, self._content, row.key, headers)
            self._messages.setdefault(self._stream_of(row.key, row.value), []).append(message)
        while self._open and self._open[0][0].done():
            self._open.popleft()
        return self._open[0][0] if sum(count for _, count in self._open) >= _FULL else None

    def _check_short(self, key: Any, names: Iterable[Any]) -> None:
        """Raise SinkError for what ends each reader by AMQP 0-9-1 that comes to the message, with an INTERNAL_ERROR of the server."""
        for what, text in (("key", key), *(("name of a header", name) for name in names)):
            if not is_short(str(text)):
                raise SinkError(
                    f"{self._who}: the {what} {str(text)[:80]!r}... has more than {LONGEST} bytes, and no reader by AMQP 0-9-1 gets beyond such "
                    "a message: take a shorter one, and put the long one into the value"
                )

    def _stream_of(self, key: Any, value: Any) -> str:
        if self._route is not None:
            stream = self._route(key, value)
            if stream not in self.streams:
                raise SinkError(
                    f"{self._who}: route({key!r}, ...) names {stream!r}; it must be one of {', '.join(self.streams)}"
                )
            return stream
        if len(self.streams) == 1:
            return self.streams[0]
        return self.streams[zlib.crc32(repr(key).encode()) % len(self.streams)]

    def prepare(self, epoch: int) -> Any:
        """Return the publisher's name, the messages and their publishing ids, which the checkpoint keeps."""
        messages, self._messages = self._messages, {}
        if not messages:
            return None
        groups = []
        for stream, some in messages.items():
            groups.append((stream, self._next, some))
            self._next += len(some)
        return self._packer.handle((self._reference, groups))[1]

    def commit(self, epoch: int, handle: Any) -> Future[None] | None:
        """Publish messages, of which the server drops those that it has; what is returned is done when it has confirmed all."""
        if handle is None:
            return None
        reference, groups = unpacked(handle[1])
        if self._publisher is None:
            self._publisher = StreamPublisher(self._who, self._address, self._say)
        publisher, count = self._publisher, sum(len(some) for _, _, some in groups)
        jobs = [publisher.publish(stream, reference, first, some) for stream, first, some in groups]
        done: Future[None] = Future()
        left = len(jobs)

        def over(job: Future[None]) -> None:  # in the publisher's one thread
            nonlocal left
            left -= 1
            error = job.exception()
            if error is not None and not done.done():
                done.set_exception(error)
            if not left and not done.done():
                done.set_result(None)

        self._open.append((done, count))
        for job in jobs:
            job.add_done_callback(over)
        return done

    def end(self, ok: bool) -> None:
        """Disconnect."""
        self.close()

    def close(self) -> None:
        """Disconnect; what was not committed comes again."""
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.close()
        self._packer.close()


def _encoded(body: bytes, content: bytes | None, key: Any, headers: Mapping[str, str]) -> bytes:
    """Return a message of AMQP 1.0, which is what streams hold: annotations, properties, application properties and data."""
    parts = []
    if key is not None:
        parts.append(b"\0\x53\x72" + _map([(_symbol(b"x-routing-key"), _string(str(key)))]))
    if content is not None:
        # the seventh field of the properties
        parts.append(b"\0\x53\x73" + _list([b"\x40"] * 6 + [_symbol(content)]))
    if headers:
        parts.append(b"\0\x53\x74" + _map([(_string(str(name)), _string(str(text))) for name, text in headers.items()]))
    parts.append(b"\0\x53\x75\xb0" + struct.pack(">I", len(body)) + body)
    return b"".join(parts)


def _string(text: str) -> bytes:
    data = text.encode()
    return b"\xb1" + struct.pack(">I", len(data)) + data


def _symbol(data: bytes) -> bytes:
    return b"\xa3" + bytes([len(data)]) + data


def _list(items: Sequence[bytes]) -> bytes:
    data = b"".join(items)
    return b"\xd0" + struct.pack(">II", len(data) + 4, len(items)) + data


def _map(items: Sequence[tuple[bytes, bytes]]) -> bytes:
    data = b"".join(name + value for name, value in items)
    return b"\xd1" + struct.pack(">II", len(data) + 4, 2 * len(items)) + data
