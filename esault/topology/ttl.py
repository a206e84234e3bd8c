"""Attributes of a bolt that are forgotten some time after they were set."""

from __future__ import annotations

import time
from typing import Any

from esault.errors import TopologyError
from esault.topology.arguments import check_seconds

__all__ = ["TimeToLive", "has_event_ttl", "ttl"]


class TimeToLive:
    """A descriptor: an object keeps (value, when it was set) in its place, which moves and is saved as any attribute."""

    def __init__(self, seconds: float, default: Any, by: str) -> None:
        self.seconds = seconds
        self.default = default
        self.by = by
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, bolt: Any, cls: type | None = None) -> Any:
        if bolt is None:
            return self
        attributes = vars(bolt)
        found = attributes.get(self._name)
        if found is None:
            return self.default
        if not self._is_ours(found):
            # Of a version of the class in which it was an attribute as any other: its life begins now.
            self.__set__(bolt, found)
            return found
        value, at = found
        if self._now(bolt) < at + self.seconds:
            return value
        if self.by == "processing":  # a tuple of an earlier time may still come
            del attributes[self._name]
        return self.default

    def _is_ours(self, found: Any) -> bool:
        """Return whether this is a value and when it was set. The clock gives floats, so that a pair of whole numbers is none."""
        kinds = (float,) if self.by == "processing" else (int, float)
        return type(found) is tuple and len(found) == 2 and type(found[1]) in kinds

    def __set__(self, bolt: Any, value: Any) -> None:
        vars(bolt)[self._name] = (value, self._now(bolt))

    def __delete__(self, bolt: Any) -> None:
        vars(bolt).pop(self._name, None)

    def _now(self, bolt: Any) -> float:
        context = getattr(bolt, "context", None)  # none where a test calls the class by itself
        if context is None:
            return time.time()
        at: float = context.event_time() if self.by == "event" else float(context.now())
        return at


def ttl(seconds: float, default: Any = None, by: str = "processing") -> Any:
    """An attribute of a bolt that has `default` again, `seconds` after it was last set: `last = ttl(3600)` in its class.

    By "processing" the clock counts; by "event" the time of the tuple, or the timer, that is processed. What is changed in
    place, as a list is, was not set. Raises TopologyError.
    """
    where = f"ttl({seconds!r})"
    check_seconds(where, "seconds", seconds)
    if by not in ("event", "processing"):
        raise TopologyError(f"{where}: by={by!r}; an attribute lives by 'event' or by 'processing' time")
    if isinstance(default, (list, dict, set, bytearray)):
        raise TopologyError(
            f"{where}: default is a {type(default).__name__}, which all keys would share; take None, or a tuple or frozenset"
        )
    return TimeToLive(float(seconds), default, by)


def has_event_ttl(cls: type) -> bool:
    """Return whether attributes of this class's objects live by event time."""
    return any(
        isinstance(value, TimeToLive) and value.by == "event" for base in cls.__mro__ for value in vars(base).values()
    )
