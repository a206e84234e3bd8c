"""Watermarks on Spark: words that senders say behind the rows of a batch, and what a task makes of them.

The words are those of the actor engine's clocks, or of the unit's own watermark where it goes on. A spout says them between its rows, too,
as often as it reads: so a tuple that comes too late is late within a batch as well. Each *way* on which time comes to a
unit, from one process by one edge, has a name; a task keeps the last word of each way with its state. Its watermark is the
least of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from esault.flow.watermark.clock import BEGINNING, END_OF_TIME, IDLE_BOLT, Clock
from esault.spark.engine.layout import Layout
from esault.topology.event_time import EventTime
from esault.topology.plan import Outlet, Plan, UnitPlan

__all__ = ["SILENT", "Heard", "Way", "Words", "timed_edges", "way", "ways_from", "ways_to", "words_of"]


class _Silent:
    def __repr__(self) -> str:
        return "SILENT"


#: nothing passed a clock in this batch
SILENT = _Silent()


class Heard(Clock):
    """A clock that knows whether rows passed since it was last asked."""

    __slots__ = ("_heard", "_told")

    def __init__(self, given: EventTime, now: Any, of_bolt: bool) -> None:
        super().__init__(given, now, of_bolt)
        self._heard = False
        #: what was said last in this batch
        self._told = BEGINNING

    def restart(self) -> None:
        """A batch begins: what is said in it follows from its rows alone, whichever worker has them. Receivers know what was said before."""
        self._top = self._told = BEGINNING
        self._heard = False

    def observe(self, values: Any) -> None:
        self._heard = True
        super().observe(values)

    def observe_columns(self, values: Any) -> bool:
        seen = super().observe_columns(values)
        self._heard = self._heard or seen
        return seen

    def word(self, between: bool = False) -> Any:
        """The watermark, or SILENT: where no rows passed, and `between` rows where it is what it was."""
        if between:
            told, self._told = self._told, self.watermark
            return SILENT if self._told <= told else self._told
        heard, self._heard = self._heard, False
        return self.watermark if heard else SILENT


@dataclass(frozen=True)
class Way:
    """One way on which time comes to a unit."""

    name: str
    #: seconds without a word after which it is waited for no more; None: it always is
    idle: float | None


def timed_edges(unit: UnitPlan) -> list[tuple[str, EventTime | None]]:
    """(target, where event time starts on the way there) of all edges, in the order in which outlets make their routes."""
    return [edge for outlet in unit.streams.values() for edge in _edges(outlet, None)]


def _edges(outlet: Outlet, given: EventTime | None) -> Iterator[tuple[str, EventTime | None]]:
    for step in outlet.steps:
        given = step.event_time if step.event_time is not None else given
    for edge in outlet.edges:
        yield edge.target, given
    for branch in outlet.branches:
        yield from _edges(branch, given)


def way(root: str, unit: str, edge: int) -> str:
    """The name of the way from a process by an edge of a unit in it."""
    return f"{root}>{unit}.{edge}"


def _edge(name: str) -> str:
    """The name of a way without the number of its process."""
    root, _, edge = name.partition(">")
    return f"{root.rpartition('/')[0]}>{edge}"


def ways_to(plan: Plan, layout: Layout, target: str) -> list[Way]:
    """All ways on which time comes to a unit."""
    found = []
    for name, unit in plan.units.items():
        if target not in unit.watermark_targets:
            continue
        for number, (to, given) in enumerate(timed_edges(unit)):
            if to != target:
                continue
            idle = None if given is None else given.idle
            if given is not None and idle is None and unit.kind == "bolt":
                idle = IDLE_BOLT
            found += [Way(way(root, name, number), idle) for root in _roots(plan, layout, name)]
    return found


def ways_from(plan: Plan, layout: Layout, root: str) -> list[tuple[str, str]]:
    """(target, way) of all ways that lead from this process to units with state."""
    return [
        (target, each.name)
        for target in layout.tasks
        for each in ways_to(plan, layout, target)
        if each.name.startswith(f"{root}>")
    ]


def _roots(plan: Plan, layout: Layout, unit: str) -> list[str]:
    """The processes that have this unit."""
    if unit in layout.parts:
        return [f"{unit}/{part}" for part in range(layout.parts[unit])]
    if unit in layout.tasks:
        return [f"{unit}/{task}" for task in range(layout.tasks[unit])]
    return list(dict.fromkeys(root for sender in plan.senders(unit) for root in _roots(plan, layout, sender)))


class Words:
    """The watermarks that a task has been told, and the one that follows."""

    def __init__(self, ways: list[Way]) -> None:
        self._idle = {each.name: each.idle for each in ways}
        #: way -> (watermark or None for idle, when it was said)
        self._said: dict[str, tuple[float | None, float]] = {}
        #: ways that were left out when this was settled last: if they come back behind, they are until they have caught up
        self._out: set[str] = set()
        self.current = BEGINNING
        #: the furthest word before the end of time
        self.furthest = BEGINNING
        #: all are idle
        self.idle = False

    def hear(self, name: str, value: float | None, now: float) -> None:
        """A word."""
        before = self._said.get(name, (BEGINNING, 0.0))[0]
        if value is not None and self.furthest < value < END_OF_TIME:  # also one behind that of its end
            self.furthest = value
        if value is not None and before is not None:
            value = max(value, before)
        self._said[name] = (value, now)

    def settle(self, now: float, between: bool = False) -> bool:
        """All words of a batch have come, or `between` its rows some; whether the watermark has grown.

        Who is silent is known at the end: rows come sender by sender, and the last word of one whose turn is still to come is as old as
        the batch before.
        """
        known: list[float] = []
        self.idle = True
        for name, idle in self._idle.items():
            value, at = self._said.setdefault(name, (BEGINNING, now))
            quiet = idle is not None and now - at >= idle and not (between and name not in self._out)
            if value is None or quiet:
                self._out.add(name)
                continue
            self.idle = False
            if name not in self._out or value >= self.current:
                self._out.discard(name)
                known.append(value)
        if not known or min(known) <= self.current:
            return False
        self.current = min(known)
        return True

    def merge(self, states: list[Any]) -> None:
        """Begin where those stood that had this task's keys, and by their names the ways from tasks that now are of another number."""
        self.current = min((current for current, *_ in states), default=BEGINNING)
        self.furthest = max((_furthest(state) for state in states), default=BEGINNING)
        by_edge: dict[str, list[tuple[float | None, float]]] = {}
        for _, said, *_ in states:
            for name, word in dict(said).items():
                by_edge.setdefault(_edge(name), []).append(word)
        for name in self._idle:
            words = by_edge.get(_edge(name), [])
            known = [value for value, _ in words if value is not None]
            if words:  # the one that is least far is waited for
                self._said[name] = (min(known) if known else None, max(at for _, at in words))

    def state(self) -> Any:
        """As a plain value."""
        return self.current, self._said, tuple(self._out), self.furthest

    def restore(self, state: Any) -> None:
        """The reverse, also of a state that does not say which ways are left out, or how far time had come."""
        self.current, said, *more = state
        self._said, self._out = dict(said), set(*more[:1])
        self.furthest = _furthest(state)


def _furthest(state: Any) -> float:
    """Return how far time had come by a state; of one that does not say so, on the ways that have not ended."""
    _, said, *more = state
    if len(more) > 1:
        return float(more[1])
    return max(
        (value for value, _ in dict(said).values() if value is not None and value < END_OF_TIME), default=BEGINNING
    )


def words_of(plan: Plan, layout: Layout, unit: UnitPlan) -> Words | None:
    """Those of a unit with state; None where it is told nothing."""
    return Words(ways_to(plan, layout, unit.name)) if unit.watermarks else None
