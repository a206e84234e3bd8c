"""The session of a key that is open, and its rows that wait for the watermark."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from typing import Any, Protocol

from esault.topology.window import Window

__all__ = ["OpenSession"]

#: so many rows that wait are put in order at once; of more, which a few may leave at a time, each is taken out of a heap
FEW = 256


class _Objects(Protocol):
    """The part of an operator that a session needs."""

    #: of the row that came last
    number: int

    def packed(self, element: Any) -> bytes:
        """The state of an object."""
        ...

    def restored(self, key: Any, window: Window, state: bytes) -> Any:
        """An object with the state that it had."""
        ...


class OpenSession:
    """The session of a key that is open, and rows whose time has not been passed yet."""

    __slots__ = ("element", "end", "end_timer", "in_order", "key", "of", "rows", "start", "wake_at")

    key: Any

    def __init__(self, of: _Objects) -> None:
        self.of = of
        self.element: Any = None
        #: bounds of what is open
        self.start, self.end = math.inf, -math.inf
        #: (time, number, stream, value), a heap: by time, and what has one time in the order in which it came;
        #: those that came with the key have numbers below 0
        self.rows: list[tuple[float, int, str, Any]] = []
        #: ... and each is behind the one before it
        self.in_order = True
        #: when this key is to be looked at next, as its timers say
        self.wake_at = math.inf
        #: when it is to be looked at for the end of a session, which may last longer now
        self.end_timer = math.inf

    def objects(self) -> list[Any]:
        return [] if self.element is None else [self.element]

    @property
    def next(self) -> float:
        """Return the time at which there is something to do: the watermark has passed a row, or reached the end."""
        first = self.rows[0][0] if self.rows else math.inf
        return math.nextafter(first if self.element is None else min(first, self.end), math.inf)

    @property
    def first(self) -> float:
        """Return the start of what is open at the watermark, with rows that wait: all of these before it touch it, and one another."""
        return min(self.start, self.rows[0][0] if self.rows else math.inf)

    @property
    def window(self) -> Window:
        """Return the bounds of what is open."""
        return Window(self.start, self.end)

    def wait(self, row: tuple[float, int, str, Any]) -> None:
        """Keep a row until its time has been passed."""
        rows = self.rows
        if self.in_order and (not rows or row >= rows[-1]):
            rows.append(row)
        else:
            self.in_order = False
            heapq.heappush(rows, row)

    def passed(self, time: float) -> list[tuple[float, int, str, Any]]:
        """Take out the rows before this time, in order."""
        rows = self.rows
        if not self.in_order:
            if len(rows) > FEW:
                found = []
                while rows and rows[0][0] < time:
                    found.append(heapq.heappop(rows))
                return found
            rows.sort()
            self.in_order = True
        if not rows or rows[-1][0] < time:
            self.rows = []
            return rows
        end = bisect_left(rows, (time,))
        found = rows[:end]
        del rows[:end]
        return found

    def put_back(self, first: list[tuple[float, int, str, Any]]) -> None:
        """Keep rows that were taken out, which come before all that wait."""
        if self.in_order:
            self.rows[:0] = first
        else:
            for row in first:
                heapq.heappush(self.rows, row)

    def __getstate__(self) -> Any:
        element = self.element
        session = None if element is None else ((self.start, self.end), self.of.packed(element))
        return (self.next, self.of.number, session, self.rows)

    def __setstate__(self, state: Any) -> None:
        self.wake_at, _, session, rows = state
        # Whatever number this operator has come to, rows to come are behind these.
        self.rows = [(at, i - len(rows), *rest) for i, (at, _, *rest) in enumerate(sorted(rows))]
        if session is not None:
            window = Window(*session[0])
            self.start, self.end = window
            self.element = self.of.restored(self.key, window, session[1])
            self.element.window = self
