"""The topic that gets the messages which a deserializer refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from esault.connectors.kafka.outbox import Outbox
from esault.errors import SourceError

__all__ = ["DeadLetters"]

#: as Kafka Connect names them (errors.deadletterqueue.context.headers.enable)
_PREFIX = "__connect.errors."


class DeadLetters:
    """Bad messages as they were, with headers that say where each stood and what was wrong with it. Connects with the first one."""

    def __init__(self, topic: str, config: Mapping[str, Any], say: Callable[[str], None]) -> None:
        self._topic, self._config, self._say = topic, config, say
        self._outbox: Outbox | None = None

    def put(self, message: Any, wrong: Exception) -> None:
        """Take a message of confluent-kafka. Raises SourceError."""
        if self._outbox is None:
            self._outbox = Outbox("KafkaSource, dead_letter_topic", self._config, SourceError, self._say)
        kind = type(wrong)
        about = {
            "topic": message.topic(),
            "partition": str(message.partition()),
            "offset": str(message.offset()),
            "exception.class.name": f"{kind.__module__}.{kind.__qualname__}",
            "exception.message": str(wrong),
        }
        headers = [*(message.headers() or ()), *((_PREFIX + name, text.encode()) for name, text in about.items())]
        bad = {"key": message.key(), "value": message.value(), "headers": headers}
        self._outbox.put(self._topic, [bad])

    def arrived(self) -> bool:
        """Return whether the broker has all of them. Raises SourceError where it refuses one."""
        return self._outbox is None or self._outbox.arrived()

    def close(self) -> None:
        """Let go of the producer. What it still holds comes again: its neighbours were not given out."""
        self._outbox = None
