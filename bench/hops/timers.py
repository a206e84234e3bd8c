"""Timers put around methods from outside: each part's own time, without that of the parts it calls and without the timers'.

A timer's cost is measured on empty functions: what lies between its two readings is taken off its own part, the rest of it off
the part that called it. The counter need not be a clock: with `sys.getallocatedblocks` parts are charged with memory.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection
from typing import Any

__all__ = ["Cell", "Timers"]

#: calls by which a timer's own cost is measured, and how often
CALLS, ROUNDS = 2_000, 25


class Cell:
    """What one part of one hop took."""

    __slots__ = ("calls", "inner", "part", "total")

    def __init__(self, part: str) -> None:
        self.part = part
        #: by the counter, without what inner timers saw
        self.total = 0
        self.calls = 0
        #: calls of timers right inside
        self.inner = 0


class Timers:
    """Wraps methods; what they take is booked on the hop that is `enter`ed and on the part they are."""

    def __init__(self, counter: Callable[[], int] = time.perf_counter_ns) -> None:
        self._counter = counter
        self._put: list[tuple[Any, str, Any]] = []
        self.forget()

    def forget(self) -> None:
        """Begin at nothing."""
        #: hop -> part -> what it took
        self.cells: dict[str, dict[str, Cell]] = {}
        self._hop: dict[str, Cell] = {}
        self._now = Cell("")
        self._children = 0

    def enter(self, hop: str) -> None:
        """What comes now is this hop's."""
        self._hop = self.cells.setdefault(hop, {})

    def around(self, function: Callable[..., Any], part: str, unless: Collection[str] = ()) -> Callable[..., Any]:
        """The function with a timer; within the parts `unless` it belongs to them."""
        counter = self._counter

        @functools.wraps(function)
        def timed(*args: Any, **named: Any) -> Any:
            outer = self._now
            if outer.part in unless:
                return function(*args, **named)
            cell = self._hop.get(part)
            if cell is None:
                cell = self._hop[part] = Cell(part)
            children, self._children, self._now = self._children, 0, cell
            begun = counter()
            try:
                return function(*args, **named)
            finally:
                took = counter() - begun
                cell.total += took - self._children
                cell.calls += 1
                outer.inner += 1
                self._children = children + took
                self._now = outer

        return timed

    def put(self, owner: Any, name: str, part: str, unless: Collection[str] = ()) -> None:
        """A timer around `owner.name`, a class's method or a module's function, until `take_off`."""
        there = vars(owner)[name]
        self._put.append((owner, name, there))
        setattr(owner, name, self.around(there, part, unless))

    def take_off(self) -> None:
        """All as it was."""
        while self._put:
            setattr(*self._put.pop())

    def cost(self) -> tuple[float, float]:
        """What a timer itself adds: (to its own part, to the part around it), the least of some rounds."""
        probe = Timers(self._counter)
        probe.enter("cost")

        def empty(*args: Any) -> None: ...

        def calling(call: Callable[..., Any]) -> None:
            for i in range(CALLS):
                call(probe, i, i, i)

        def looping() -> None:
            for _ in range(CALLS):
                pass

        inner, around = probe.around(empty, "inner"), probe.around(calling, "around")
        bare = probe.around(looping, "bare")
        least: dict[str, float] = {}
        for _ in range(ROUNDS):
            probe.forget()
            probe.enter("cost")
            around(inner)
            cells = probe.cells["cost"]
            each = {"inner": cells["inner"].total / CALLS, "outer": cells["around"].total / CALLS}
            probe.forget()
            probe.enter("cost")
            around(empty)
            bare()
            cells = probe.cells["cost"]
            each.update(plain=cells["around"].total / CALLS, loop=cells["bare"].total / CALLS)
            least = {name: min(value, least.get(name, value)) for name, value in each.items()}
        return max(0.0, least["inner"] - (least["plain"] - least["loop"])), max(0.0, least["outer"] - least["loop"])

    def corrected(self, cost: tuple[float, float] = (0.0, 0.0)) -> dict[str, dict[str, float]]:
        """Hop -> part -> what it took, without the timers; `cost` as measured."""
        inside, outside = cost
        return {
            hop: {part: cell.total - cell.calls * inside - cell.inner * outside for part, cell in parts.items()}
            for hop, parts in self.cells.items()
        }

    def calls(self) -> int:
        """Calls of all timers so far."""
        return sum(cell.calls for parts in self.cells.values() for cell in parts.values())
