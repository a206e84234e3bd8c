"""Topics of MQTT as a sink."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar

from esault.connectors.mqtt.client import Session, address, ask
from esault.connectors.packed_messages import MessagePacker, unpacked
from esault.errors import EsaultError, SinkError, TopologyError
from esault.sinks.serializers import serializer
from esault.topology.context import Context
from esault.topology.sink import Row, Sink

__all__ = ["MqttSink"]

#: topic, payload, the name of the row
_Message = tuple[str, bytes, str]

#: messages that are handed to paho and not acknowledged at most; it sends 20 at a time, as many as mosquitto allows unless set
_WINDOW = 500
#: messages that wait to be published before no more rows are taken
_FULL = 5_000
#: bytes of a packet beside topic, payload and the name of the row
_AROUND = 18
#: bytes of a topic
_LONGEST = 65_535
#: connections that may end in a row before the broker has taken a message
_MOST_IN_VAIN = 10


class MqttSink(Sink):
    """Messages of topics by MQTT 5, one for each row, with QoS 1; needs `esault[mqtt]`.

    `topic` is a name, or a function `(key, value) -> name`. `value_serializer`: "json", "text", "bytes", or a function from a value to
    bytes. With `retain=True` the broker keeps the last message of each topic for those who subscribe later.

    Rows are published when they are committed, and acknowledged by the broker. A message has the user property "id", which follows from its row
    and the state folder: a repeat has the same. Rows wait in memory for the checkpoint, and are in it.
    """

    wants_id: ClassVar[bool] = True
    extra: ClassVar[str] = "mqtt"
    delivery_guarantee: ClassVar[str] = (
        "at least once: what goes on from a checkpoint repeats its rows, with the same id"
    )

    def __init__(
        self,
        topic: str | Callable[[Any, Any], str],
        host: str = "localhost",
        port: int = 1883,
        *,
        user: str | None = None,
        password: str | None = None,
        tls: bool = False,
        value_serializer: Any = "json",
        retain: bool = False,
    ) -> None:
        if not callable(topic) and not _is_topic(topic):
            raise TopologyError(
                f"MqttSink: topic={topic!r}: write a name without + and #, or a function of key and value"
            )
        self._topic, self._retain = topic, bool(retain)
        self._server = address("MqttSink", host, port, user, password, tls)
        self._value = serializer("MqttSink", "value_serializer", value_serializer)
        self._who = f"MqttSink, {topic if isinstance(topic, str) else 'topics by a function'}"
        self._say: Callable[[str], None] = lambda line: None  # the driver's object has no context
        self._begin_again("")

    def _begin_again(self, name: str, kept: bool = False) -> None:
        self._name = name
        self._messages: list[_Message] = []
        #: handles that this object has been given to commit, the newest
        self._done: deque[str] = deque(maxlen=1000)
        self._outbox: _Outbox | None = None
        self._packer = MessagePacker(self._who, kept)

    def destination(self) -> str:
        """Return where rows go, for people."""
        return self._who.partition(", ")[2]

    def check(self) -> None:
        """Raises SinkError where no broker answers, or it refuses the user."""
        ask(self._who, SinkError, self._server)

    def open(self, context: Context) -> None:
        """Nothing yet: the first commit connects."""
        self.context = context
        self._say = context.logger.warning
        self._begin_again(f"{context.lineage}-{context.unit}-", context.lineage != context.run)

    def write(self, rows: Sequence[Row]) -> Future[None] | None:
        """Make messages of rows; what is returned is done when the broker has taken those before."""
        self._messages += map(self._message, rows)
        return None if self._outbox is None else self._outbox.room()

    def _message(self, row: Row) -> _Message:
        topic = self._topic if isinstance(self._topic, str) else self._topic(row.key, row.value)
        if not _is_topic(topic):
            raise SinkError(
                f"{self._who}: {topic!r}, made of key {row.key!r}, is no topic: return a name of {_LONGEST:,} bytes at most without + and #"
            )
        try:
            return topic, self._value(row.value) or b"", self._name + str(row.id)
        except SinkError as error:
            raise SinkError(f"{self._who}: {error}") from None

    def prepare(self, epoch: int) -> Any:
        """Return a token and the messages, which the checkpoint keeps."""
        messages, self._messages = self._messages, []
        if not messages:
            return None
        _, handle = self._packer.handle(messages)
        return handle

    def commit(self, epoch: int, handle: Any) -> Future[None] | None:
        """Publish messages, where this object has not; what is returned is done when the broker has acknowledged all."""
        if handle is None or handle[0] in self._done:
            return None
        token, kept = handle
        self._done.append(token)
        if self._outbox is None:
            self._outbox = _Outbox(self._who, self._server, self._say, self._retain)
        messages = unpacked(kept)
        return self._outbox.publish(messages)

    def end(self, ok: bool) -> None:
        """Disconnect."""
        self.close()

    def close(self) -> None:
        """Disconnect; what was not committed comes again."""
        outbox, self._outbox = self._outbox, None
        if outbox is not None:
            outbox.close()
        self._packer.close()


def _is_topic(name: Any) -> bool:
    if not isinstance(name, str) or not name or set(name) & set("+#\0"):
        return False
    try:  # its bytes are counted where they may be others than characters
        return len(name if name.isascii() else name.encode()) <= _LONGEST
    except UnicodeEncodeError:
        return False


class _Outbox:
    """One connection, and a thread that publishes in order; what a broken connection leaves open paho sends again."""

    def __init__(self, who: str, server: Any, say: Callable[[str], None], retain: bool) -> None:
        self._who, self._retain = who, retain
        self._change = threading.Condition()
        #: published and not acknowledged: their topics and bytes
        self._unanswered: deque[tuple[str, int]] = deque()
        #: connections in a row that ended before the broker had acknowledged anything
        self._in_vain = 0
        # paho sends what an earlier connection left open in a thread of its own: what is published meanwhile would overtake it.
        self._connected = self._in_order = False
        self._waiting = 0
        self._error: EsaultError | None = None
        self._last: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "esault MqttSink")
        self._session = Session(
            who,
            SinkError,
            server,
            say,
            "",
            connected=lambda client: self._set(True),
            lost=lambda: self._set(False),
            failed=self._fail,
        )
        self._session.client.on_publish = self._published
        self._session.start()

    def publish(self, messages: Sequence[_Message]) -> Future[None]:
        """Return what is done when the broker has acknowledged all."""
        with self._change:
            self._waiting += len(messages)
        self._last = self._thread.submit(self._send, messages)
        return self._last

    def room(self) -> Future[None] | None:
        """Return what is done when more may be given; None: now."""
        with self._change:
            return self._last if self._waiting > _FULL else None

    def close(self) -> None:
        """Disconnect; what is not acknowledged is given up."""
        self._session.close()
        self._fail(SinkError(f"{self._who}: closed before the broker had acknowledged all"))
        self._thread.shutdown()

    def _send(self, messages: Sequence[_Message]) -> None:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        for topic, payload, name in messages:
            self._until_in_order()
            most = self._session.most_bytes
            if most is not None and len(payload) + len(topic.encode()) + len(name) + _AROUND > most:
                raise SinkError(
                    f"{self._who}: a message of {len(payload):,} bytes for {topic!r} is too large: the broker takes packets of {most:,} "
                    "bytes; write smaller values, or raise its limit (mosquitto: max_packet_size)"
                )
            properties = Properties(PacketTypes.PUBLISH)
            properties.UserProperty = ("id", name)
            with self._change:
                self._unanswered.append((topic, len(payload)))
            # Not under the lock: paho holds one of its own when it calls `_published`.
            self._session.client.publish(topic, payload, 1, self._retain, properties)
        self._until_open(1)
        with self._change:
            self._waiting -= len(messages)

    def _set(self, connected: bool) -> None:
        with self._change:
            first = self._unanswered[0] if self._connected and not connected and self._unanswered else None
            self._connected, self._in_order = connected, False
            self._in_vain += first is not None
            self._change.notify_all()
        if first is not None and self._in_vain >= _MOST_IN_VAIN:
            topic, size = first
            self._fail(
                SinkError(
                    f"{self._who}: the broker ended {self._in_vain} connections in a row without taking a message of {size:,} bytes for "
                    f"{topic!r}; its log says why: it may be too large (mosquitto: message_size_limit)"
                )
            )

    def _until_in_order(self) -> None:
        """Wait until a message may go: it is connected, and what was open before that is acknowledged."""
        with self._change:
            self._change.wait_for(lambda: self._error is not None or (self._connected and self._room))
            self._in_order = True
            if self._error is not None:
                raise self._error

    @property
    def _room(self) -> bool:
        return len(self._unanswered) < (_WINDOW if self._in_order else 1)

    def _until_open(self, fewer_than: int) -> None:
        with self._change:
            self._change.wait_for(lambda: self._error is not None or len(self._unanswered) < fewer_than)
            if self._error is not None:
                raise self._error

    def _published(self, client: Any, userdata: Any, mid: int, reason: Any, properties: Any) -> None:
        with self._change:
            self._unanswered.popleft()
            self._in_vain = 0
            self._change.notify_all()
        if reason.is_failure:
            self._fail(
                SinkError(
                    f"{self._who}: the broker refuses a message ({reason}): allow this user to write to its topic"
                )
            )

    def _fail(self, error: EsaultError) -> None:
        with self._change:
            self._error = self._error or error
            self._change.notify_all()
