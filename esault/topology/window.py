"""Windows: how the tuples of a key are cut into groups, each of which has an object of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple

from esault.errors import TopologyError
from esault.topology.arguments import described_span
from esault.topology.function import check_function

__all__ = ["CountWindow", "SessionWindow", "SlidingWindow", "TimeWindow", "TumblingWindow", "Window", "WindowKind"]


class Window(NamedTuple):
    """A window, as `self.window` of a bolt: from `start` on, before `end`; seconds since the epoch, or numbers of tuples."""

    start: Any
    end: Any


class WindowKind:
    """Base of all kinds. One of one's own derives from `TimeWindow`."""

    #: time closes its windows; else their tuples alone do
    timed: ClassVar[bool] = True


class TimeWindow(WindowKind):
    """Base of kinds whose windows have numbers and bounds that time alone decides: subclass it for windows of one's own.

    For a time t, window k is among `indices(t)` just where `window(k).start <= t < window(k).end`. Later windows have
    greater numbers. The same answers must come in every process.
    """

    def indices(self, time: float) -> range:
        """Return the numbers of the windows that contain this time, seconds since the epoch, the first one first."""
        raise NotImplementedError(f"{type(self).__name__} must define indices(time)")

    def window(self, index: int) -> Window:
        """Return the bounds of window `index`, seconds since the epoch."""
        raise NotImplementedError(f"{type(self).__name__} must define window(index)")


@dataclass(frozen=True, repr=False)
class SlidingWindow(TimeWindow):
    """Windows of `size` seconds that begin every `every` seconds, `offset` seconds behind multiples of it since the epoch.

    A tuple is in as many of them as contain its time. Raises TopologyError.
    """

    size: float
    every: float
    offset: float = 0
    _steps: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        where = type(self).__name__
        object.__setattr__(self, "size", seconds(where, "size", self.size))
        object.__setattr__(self, "every", seconds(where, "every", self.every))
        object.__setattr__(self, "offset", _offset(where, self.offset, self.every))
        # As many windows contain each time, and nothing is rounded.
        whole = (
            isinstance(self.size, int)
            and isinstance(self.every, int)
            and self.size % self.every == 0
            and not self.offset
        )
        object.__setattr__(self, "_steps", self.size // self.every if whole else 0)
        if self.every > self.size:
            raise TopologyError(
                f"{where}: every={self.every!r} is greater than size={self.size!r}, so that tuples between two windows would be in "
                "none; make every at most size"
            )

    def __repr__(self) -> str:
        return f"SlidingWindow(size={self.size!r}, every={self.every!r}{self._shift})"

    @property
    def _shift(self) -> str:
        return f", offset={self.offset!r}" if self.offset else ""

    def indices(self, time: float) -> range:
        """Numbers of the windows that contain this time, the first one first.

        Window k is from k * every + offset on. Multiples of fractions are rounded: the bounds hold as `window` gives them. Where
        windows follow one another the end of one is where the next one starts, however that was rounded.
        """
        every, size = self.every, self.size
        if self._steps:
            last = int(time // every)
            return range(last - self._steps + 1, last + 1)
        shifted = time - self.offset
        last = int(shifted // every)
        if (last + 1) * every + self.offset <= time:
            last += 1
        elif last * every + self.offset > time:  # by rounding
            last -= 1
        if size == every:
            return range(last, last + 1)
        first = int((shifted - size) // every) + 1
        while self.window(first).end <= time:
            first += 1
        while self.window(first - 1).end > time:
            first -= 1
        return range(min(first, last), last + 1)  # rounding must leave no time without a window

    def window(self, index: int) -> Window:
        """The bounds of window `index`."""
        start = index * self.every + self.offset
        return Window(start, start + self.size if self.size > self.every else (index + 1) * self.every + self.offset)


class TumblingWindow(SlidingWindow):
    """Windows of `size` seconds, one after the other, from `offset` behind multiples of it since the epoch on. Raises TopologyError."""

    def __init__(self, size: float, offset: float = 0) -> None:
        super().__init__(size, size, offset)

    def __repr__(self) -> str:
        return f"TumblingWindow({self.size!r}{self._shift})"


@dataclass(frozen=True)
class SessionWindow(WindowKind):
    """A window lasts until no tuple of its key has come for more than `gap` seconds; it ends `gap` after its last one.

    Its object gets the tuples in the order of their times. `gap` may be a function that gives each value's own: a session ends where
    the gap of none of its tuples lasts any longer. Raises TopologyError.
    """

    gap: float | Callable[[Any], float]

    def __post_init__(self) -> None:
        if callable(self.gap):
            check_function("SessionWindow, gap", self.gap, takes=("the value",))
        else:
            object.__setattr__(self, "gap", seconds("SessionWindow", "gap", self.gap))


@dataclass(frozen=True)
class CountWindow(WindowKind):
    """Each `size` tuples of a key, in the order in which they come; time plays no part. Raises TopologyError.

    With `every`, a window closes every so many tuples, and holds the last `size` that there are by then.
    """

    timed = False

    size: int
    every: int | None = None

    def __post_init__(self) -> None:
        for argument, value in (("size", self.size), ("every", self.every)):
            if value is None and argument == "every":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise TopologyError(f"CountWindow: {argument}={value!r} must be a whole number of tuples from 1 on")
        if self.step > self.size:
            raise TopologyError(
                f"CountWindow: every={self.every!r} is greater than size={self.size!r}, so that tuples between two windows would be in "
                "none; make every at most size"
            )

    def __repr__(self) -> str:
        return f"CountWindow(size={self.size!r}{'' if self.every is None else f', every={self.every!r}'})"

    @property
    def step(self) -> int:
        """Return the number of tuples after which a window closes."""
        return self.size if self.every is None else self.every


def _offset(where: str, value: object, every: float) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or abs(value) >= every
    ):
        raise TopologyError(
            f"{where}: offset={value!r} must be a number of seconds, above -{every!r} and below {every!r}: windows begin every {every!r} s"
        )
    return int(value) if value == int(value) else float(value)


def seconds(where: str, argument: str, value: object) -> float:
    """`value` as seconds above 0: an int where it is whole, so that bounds of windows are exact. Raises TopologyError."""
    if isinstance(value, timedelta):
        raise TopologyError(f"{where}: {argument} is a number of seconds, not {described_span(value)}")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise TopologyError(f"{where}: {argument}={value!r} must be a number of seconds above 0")
    return int(value) if value == int(value) else float(value)
