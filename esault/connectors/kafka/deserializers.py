"""Deserializers: from the bytes of a message to keys and values. What is None stays so.

"json", "text", "bytes"; a function from bytes; or an object with `deserializer(topic, field)`, as those of `esault.formats`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esault.errors import SourceError
from esault.sources import deserializers

__all__ = ["Deserializer", "deserializer"]

_WHO = "KafkaSource"


class Deserializer:
    """A deserializer as the user wrote it."""

    def __init__(self, wanted: Any) -> None:
        self._wanted = wanted

    def check(self) -> None:
        """Raise SourceError where what it needs is not there, such as a schema registry."""
        if hasattr(self._wanted, "deserializer"):
            self._wanted.check(_WHO, SourceError)
            self._wanted.close()

    def close(self) -> None:
        """Let go of what it needs; readers have been closed."""
        if hasattr(self._wanted, "deserializer"):
            self._wanted.close()

    def of(self, topic: str, field: str) -> Callable[[bytes], Any]:
        """Return the function for the keys or the values of a topic."""
        made = getattr(self._wanted, "deserializer", None)
        if made is not None:
            function: Callable[[bytes], Any] = made(topic, field)
            return function
        return self._wanted  # type: ignore[no-any-return]


def deserializer(option: str, wanted: Any) -> Deserializer:
    """Return what `wanted` names. Raises TopologyError."""
    if hasattr(wanted, "deserializer"):
        return Deserializer(wanted)
    return Deserializer(deserializers.deserializer(_WHO, option, wanted, "a format of esault.formats, "))
