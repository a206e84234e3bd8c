"""Latency objectives of a run: what is asked for, and whether it is kept.

The words are those of service level objectives (Beyer et al., The Site Reliability Workbook, 2018, chapters 2 and 5): a tuple is
slow where it takes longer than the objective's latency; the *error budget* is the share of tuples that may be slow, which is
1 % for a p99; the *burn rate* is the share that was slow over the share that may be.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from esault.errors import UsageError
from esault.histogram import Histogram
from esault.topology.plan import Plan
from esault.value_class import value_class

__all__ = ["LatencyObjective", "ObjectiveStatus", "ObjectiveTracker", "parsed"]

#: seconds of a window that is over or not
WINDOW = 1.0
#: windows that the burn rate of late is taken over
RECENT = 5
#: seconds in one of each unit of time that may be written
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_WRITTEN = re.compile(
    r"(?:(?P<unit>[^=<>]+?)\s*=\s*)?p(?P<quantile>\d{1,2}(?:\.\d+)?)\s*<\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<time>us|ms|s|min)"
)


@value_class(frozen=True)
class LatencyObjective:
    """A share of tuples is to take less than so many seconds."""

    #: such as 0.99
    quantile: float
    seconds: float
    #: of this unit's tuples, from the packing of the frame they come in to the end of their processing; empty: of all, end to end
    unit: str = ""

    @classmethod
    def parse(cls, text: str) -> LatencyObjective:
        """Read `p99 < 100 ms` or `UNIT=p99 < 100 ms`. Raises UsageError that says how it is written."""
        found = _WRITTEN.fullmatch(text.strip())
        if found is None:
            raise UsageError(
                f"objective {text!r}: write 'p99 < 100 ms', or 'UNIT=p95 < 2 s'; times in us, ms, s or min"
            )
        quantile, seconds = float(found["quantile"]) / 100, float(found["number"]) * _UNITS[found["time"]]
        if not 0 < quantile < 1 or not seconds > 0:
            raise UsageError(f"objective {text!r}: the quantile is above p0 and below p100, and the time above 0")
        return cls(quantile, seconds, found["unit"] or "")

    @property
    def budget(self) -> float:
        """Share of tuples that may be slow."""
        return 1.0 - self.quantile

    def __str__(self) -> str:
        return f"{self.unit}={self._latency}" if self.unit else self._latency

    @property
    def _latency(self) -> str:
        many, time = next(
            ((self.seconds / each, name) for name, each in reversed(_UNITS.items()) if self.seconds >= each),
            (1e6 * self.seconds, "us"),
        )
        return f"p{round(100 * self.quantile, 6):g} < {round(many, 6):g} {time}"


@value_class(frozen=True)
class ObjectiveStatus:
    """One objective, as far as the run has come. Tuples are those that reached their end in it."""

    objective: LatencyObjective
    #: all tuples, and the slow ones of them
    tuples: int = 0
    slow: int = 0
    #: seconds in which tuples came to their end, and those of them in which more were slow than may be
    seconds: int = 0
    seconds_over: int = 0
    #: seconds that the objective's share of tuples took at most: of all, and of the last few windows; None: there are none
    measured: float | None = None
    recent: float | None = None
    #: of the last few windows: 1 spends the budget just as fast as may be; None where nothing came to its end
    recent_burn_rate: float | None = None

    @property
    def burn_rate(self) -> float:
        """Share of tuples that were slow over the share that may be: above 1 the objective is missed."""
        return self.slow / self.tuples / self.objective.budget if self.tuples else 0.0

    @property
    def kept(self) -> bool:
        """Return whether no more tuples were slow than may be."""
        return self.burn_rate <= 1.0


def parsed(plan: Plan, texts: Iterable[str]) -> tuple[LatencyObjective, ...]:
    """Read all objectives of a run. Raises UsageError for one that cannot be read, or is of no bolt's unit of the plan."""
    objectives = tuple(LatencyObjective.parse(text) for text in texts)
    for each in objectives:
        unit = plan.units.get(each.unit)
        if each.unit and unit is None:
            raise UsageError(f"objective '{each}': {plan.unknown(each.unit)}")
        if unit is not None and unit.kind == "spout":
            raise UsageError(
                f"objective '{each}': {each.unit!r} is a spout; name a bolt's unit, or none for end to end"
            )
    return objectives


@dataclass
class _Counted:
    """One objective: how it stands, and the latencies up to then."""

    status: ObjectiveStatus
    seen: Histogram
    #: of the last windows
    recent: deque[Histogram]


class ObjectiveTracker:
    """Looks once a second at the latencies of what has come to its end, and counts what was slow."""

    def __init__(self, objectives: Iterable[LatencyObjective] = ()) -> None:
        self._counted = [_Counted(ObjectiveStatus(each), Histogram(), deque(maxlen=RECENT)) for each in objectives]
        self._due = 0.0

    def __bool__(self) -> bool:
        return bool(self._counted)

    @property
    def statuses(self) -> tuple[ObjectiveStatus, ...]:
        """Return where each stands, in the order they were given."""
        return tuple(each.status for each in self._counted)

    def observe(self, now: float, latencies: Callable[[str], Histogram], last: bool = False) -> None:
        """Take a window that has ended by `now`, seconds since the epoch; with `last` also one that has only begun.

        `latencies(unit)` gives all latencies of the unit's tuples so far; of the empty name those end to end.
        """
        if not self._counted or (now < self._due and not last):
            return
        self._due = max(self._due + WINDOW, now + WINDOW / 2)
        for each in self._counted:
            seen = latencies(each.status.objective.unit)
            self._count(each, seen, seen.since(each.seen))
            each.seen = seen

    def _count(self, each: _Counted, seen: Histogram, window: Histogram) -> None:
        before, objective = each.status, each.status.objective
        each.recent.append(window)
        recent = Histogram()
        for one in each.recent:
            recent.merge(one)
        slow = window.above(objective.seconds)
        share = recent.above(objective.seconds) / recent.count if recent.count else None
        each.status = ObjectiveStatus(
            objective,
            before.tuples + window.count,
            before.slow + slow,
            before.seconds + (window.count > 0),
            before.seconds_over + (slow > window.count * objective.budget + 1e-9),
            seen.quantile(objective.quantile) if seen.count else None,
            recent.quantile(objective.quantile) if recent.count else None,
            None if share is None else share / objective.budget,
        )
