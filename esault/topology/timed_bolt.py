"""A bolt that is told the times of its tuples and of the watermark: the base of joins by time and of patterns.

It is an object per key, without windows. What it holds on to has a time at which the watermark lets it go, so that its state has an end.
"""

from __future__ import annotations

import math
from typing import Any

from esault.topology.bolt import Bolt
from esault.topology.window import WindowKind

__all__ = ["NEVER", "TimedBolt", "Unwindowed", "behind"]

#: the time at which a bolt wants to be woken that waits for nothing
NEVER = math.inf


class Unwindowed(WindowKind):
    """No windows: one object per key, a `TimedBolt`, that watermarks wake. For the engine's own bolts."""

    def __repr__(self) -> str:
        return "key"


class TimedBolt(Bolt[Any, Any, Any, Any]):
    """One object per key. `state` and `restore` are what moves, beside the time at which it is due."""

    __slots__ = ("wake_at",)

    def __init__(self) -> None:
        #: the time for which the operator has a timer
        self.wake_at = NEVER

    def process(self, key: Any, value: Any) -> None:
        """Not called: a tuple comes with its time."""
        raise RuntimeError(f"{type(self).__name__} takes tuples with their times; it works in stream.join and its like")

    def take(self, stream: str, value: Any, at: float, watermark: float) -> bool:
        """Take in a tuple of time `at`; False: it is late. No tuple before `watermark` is on time."""
        raise NotImplementedError

    @property
    def due(self) -> float:
        """Return the watermark from which on there is something to do; NEVER: none."""
        raise NotImplementedError

    def advance(self, watermark: float) -> None:
        """Do what is due, or the first part of it: it is called until `due` is beyond the watermark."""
        raise NotImplementedError

    @property
    def current(self) -> Any:
        """Return the value of the tuple that `advance` is to process."""
        return None

    def skip(self) -> Any:
        """Leave out what `advance` failed at, and return the value of its tuple."""
        return None

    @property
    def needed(self) -> bool:
        """Return whether there is any state; if not, the object is forgotten."""
        raise NotImplementedError

    def state(self) -> tuple[Any, ...]:
        """Return what moves."""
        raise NotImplementedError

    def restore(self, *state: Any) -> None:
        """Put in what `state` returned, in which lists may have become tuples."""
        raise NotImplementedError

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.due, *self.state())

    def __setstate__(self, state: Any) -> None:
        self.wake_at = state[0]
        self.restore(*state[1:])

    def objects(self) -> list[Any]:
        """Return the user's objects of this key, as the operators of windows ask for them: this one."""
        return [self]


def behind(time: float) -> float:
    """Return the first watermark that says of `time` that nothing will come any more."""
    return math.nextafter(time, math.inf)
