"""Topics of MQTT as a source that is acknowledged."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from esault.connectors.mqtt.client import Session, address, ask
from esault.errors import EsaultError, SourceError, TopologyError
from esault.sources import deserializers
from esault.topology.arguments import check_seconds, listed
from esault.topology.context import Context
from esault.topology.spout import Spout

__all__ = ["MqttSource"]

#: messages that brokers give before the first is acknowledged, at least: mosquitto, unless it is told otherwise
_LEAST_IN_FLIGHT = 20
#: what the name of a shared subscription may not have
_NAMED = {ord(character): f"%{ord(character):02X}" for character in "/+#"}


class MqttSource(Spout[Any, Any]):
    """Messages of topics by MQTT 5, one tuple for each, acknowledged when they are durable; needs `esault[mqtt]`.

    `topics` are topic filters, such as "sensors/+/temperature" or "plant/#". The key is the topic, the value what the deserializer makes of the
    payload. `client_id` names the session, which the broker keeps for `session_expiry` seconds: what comes while no run reads is given to the
    next one. Several sub-units share it, by a shared subscription ($share). `receive_maximum`: messages that a
    sub-unit may hold without having acknowledged them: with checkpoints that is as many in each interval. `metadata=True`: a value is a dict
    of "value", "topic", "qos", "retain" (the broker had kept it), "duplicate" and "user_properties" (a list of pairs).
    `on_bad_message="skip"` leaves out and counts what the deserializer refuses.

    What publishers send with QoS 0 is not kept by the broker while it cannot be delivered.
    """

    parallel: ClassVar[bool] = True
    seekable = False
    extra: ClassVar[str] = "mqtt"
    delivery_guarantee: ClassVar[str] = "at least once, of messages with QoS 1: acknowledged when durable"

    def __init__(
        self,
        topics: str | Iterable[str],
        host: str = "localhost",
        port: int = 1883,
        *,
        client_id: str,
        user: str | None = None,
        password: str | None = None,
        tls: bool = False,
        deserializer: Any = "json",
        session_expiry: float = 86_400.0,
        receive_maximum: int = 1000,
        metadata: bool = False,
        on_bad_message: str = "fail",
    ) -> None:
        self.topics: list[str] = listed(topics)
        if not self.topics or not all(isinstance(topic, str) and topic for topic in self.topics):
            raise TopologyError(f"MqttSource: topics={topics!r}: write a topic filter, or a list of them")
        if bad := [topic for topic in self.topics if not _is_filter(topic)]:
            raise TopologyError(
                f"MqttSource: topics={topics!r}: {bad[0]!r} is no topic filter: + stands for a whole level, and # for all that follow, at the "
                "end"
            )
        if not isinstance(client_id, str) or not client_id:
            raise TopologyError(f"MqttSource: client_id={client_id!r}: write a name that no other client has")
        if type(receive_maximum) is not int or not 1 <= receive_maximum <= 65_535:
            raise TopologyError(f"MqttSource: receive_maximum={receive_maximum!r}: write a number from 1 to 65535")
        if on_bad_message not in ("fail", "skip"):
            raise TopologyError(f'MqttSource: on_bad_message={on_bad_message!r}: write "fail" or "skip"')
        self._server = address("MqttSource", host, port, user, password, tls)
        self._client_id, self._most = client_id, receive_maximum
        self._expiry = int(check_seconds("MqttSource", "session_expiry", session_expiry))
        self._value = deserializers.deserializer("MqttSource", "deserializer", deserializer)
        self._metadata, self._skips, self._skipped = metadata, on_bad_message == "skip", 0
        self._who = f"MqttSource, {', '.join(self.topics)}"
        self._inbox: _Inbox | None = None
        self._place: tuple[str, int] = ("", 0)
        self._said_full = False

    def check(self) -> None:
        """Raises SourceError where no broker answers, or it refuses the user."""
        ask(self._who, SourceError, self._server)

    def open(self, context: Context) -> None:
        """Connect, and subscribe."""
        self.context = context
        shared = context.parts > 1
        filters = [f"$share/{self._client_id.translate(_NAMED)}/{topic}" if shared else topic for topic in self.topics]
        name = f"{self._client_id}-{context.part}" if shared else self._client_id
        self._inbox = _Inbox(self._who, filters)
        self._inbox.begin(
            Session(
                self._who,
                SourceError,
                self._server,
                context.logger.warning,
                name,
                expiry=self._expiry,
                receive=self._most,
                connected=self._inbox.connected,
                lost=self._inbox.lost,
                failed=self._inbox.fail,
            )
        )

    def read(self, limit: int) -> Sequence[tuple[Any, Any]]:
        """Return what has come. Raises SourceError where the broker refuses it."""
        assert self._inbox is not None
        rows = []
        token, messages = self._inbox.take(limit)
        for number, message in messages:
            self._place = (token, number)
            try:
                value = self._value(message.payload)
            except Exception as wrong:
                if not self._skips:
                    raise SourceError(
                        f"{self._who}: a message of {message.topic!r}: {type(wrong).__name__}: {wrong}; take another deserializer, or leave "
                        'such messages out with on_bad_message="skip"'
                    ) from wrong
                self._skipped += 1
                if self._skipped == 1:
                    place = f"{self._who}: a message of {message.topic!r}"
                    self.context.logger.warning(deserializers.told_bad(place, wrong))
                continue
            rows.append((message.topic, _described(value, message) if self._metadata else value))
        if not messages and not self._said_full and self._inbox.held() >= self._most:
            self._said_full = True
            self.context.logger.warning(
                f"all {self._most:,} messages that receive_maximum allows wait for their acknowledgement, which comes when their rows are "
                "durable: raise it, or take checkpoints more often"
            )
        return rows

    def held_back(self) -> bool:
        """Return whether the broker may give no more before some messages are acknowledged."""
        return self._inbox is not None and self._inbox.held() >= min(self._most, _LEAST_IN_FLIGHT)

    def position(self) -> tuple[str, int]:
        """Return the connection and the number of the last message in it."""
        return self._place

    def commit(self, position: Any) -> None:
        """Acknowledge all up to there, where it is of this connection: what one before had read comes again."""
        if self._inbox is not None:
            self._inbox.acknowledge(*position)

    def counters(self) -> dict[str, int]:
        """Return how many messages were left out."""
        return {"bad_messages_skipped": self._skipped} if self._skips else {}

    def close(self) -> None:
        """Disconnect; the broker keeps what comes, and what is not acknowledged."""
        if self._inbox is not None:
            self._inbox.close()


def _is_filter(topic: str) -> bool:
    *before, last = topic.split("/")
    return all(level == "+" or not {"+", "#"} & set(level) for level in [*before, "" if last == "#" else last])


def _described(value: Any, message: Any) -> dict[str, Any]:
    return {
        "value": value,
        "topic": message.topic,
        "qos": message.qos,
        "retain": bool(message.retain),
        "duplicate": bool(message.dup),
        "user_properties": list(getattr(message.properties, "UserProperty", ())),
    }


class _Inbox:
    """Messages that have come and were not read yet, and those that were read and not acknowledged."""

    def __init__(self, who: str, filters: list[str]) -> None:
        self._who, self._filters = who, filters
        self._lock = threading.Lock()
        self._waiting: deque[tuple[int, Any]] = deque()
        self._open: deque[tuple[int, Any]] = deque()
        #: of these, those that the broker waits for
        self._held = 0
        self._token, self._number = "", 0
        self._error: EsaultError | None = None
        self._session: Session | None = None

    def begin(self, session: Session) -> None:
        self._session = session
        session.client.on_message, session.client.on_subscribe = self._come, self._subscribed
        session.start()

    def take(self, limit: int) -> tuple[str, list[tuple[int, Any]]]:
        with self._lock:
            if self._error is not None and not self._waiting:
                raise self._error
            taken = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
            self._open.extend(taken)
            self._held += sum(message.qos > 0 for _, message in taken)
            return self._token, taken

    def held(self) -> int:
        with self._lock:
            return self._held

    def acknowledge(self, token: str, number: int) -> None:
        done = []
        with self._lock:
            while token == self._token and self._open and self._open[0][0] <= number:
                message = self._open.popleft()[1]
                self._held -= message.qos > 0
                done.append(message)
        assert self._session is not None
        for message in done:
            if message.qos:
                self._session.client.ack(message.mid, message.qos)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    def connected(self, client: Any) -> None:
        from paho.mqtt.subscribeoptions import SubscribeOptions

        # A session that is there has its retained messages already.
        options = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
        client.subscribe([(each, options) for each in self._filters])

    def lost(self) -> None:
        with self._lock:  # the broker gives them again
            self._waiting.clear()
            self._open.clear()
            self._token, self._held = "", 0

    def fail(self, error: EsaultError) -> None:
        with self._lock:
            self._error = error

    def _subscribed(self, client: Any, userdata: Any, mid: int, reasons: Any, properties: Any) -> None:
        for topic, reason in zip(self._filters, reasons):
            if reason.is_failure:
                self.fail(
                    SourceError(f"{self._who}: the broker refuses {topic!r} ({reason}): allow it, or correct the topic")
                )

    def _come(self, client: Any, userdata: Any, message: Any) -> None:
        with self._lock:
            self._token = self._token or uuid.uuid4().hex[:12]
            self._number += 1
            self._waiting.append((self._number, message))
