"""The timeline of a run: each unit in each window, and changes as they end.

Made of what the driver knows anyway; nothing on the data path is asked for it. Windows begin when tuples begin to flow
and are cut at the same instants for all units. Counts of all windows together are those of the report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from esault.control.report.unit_counts import UnitCounted, counted
from esault.control.run.driver import Driver
from esault.control.units.unit import Unit
from esault.counters import UnitCounts, declared
from esault.elasticity.totals import Totals
from esault.histogram import Histogram
from esault.messages.change_record import ChangeRecord
from esault.messages.status import SubUnitCounts
from esault.value_class import value_class

__all__ = ["IN_WINDOWS", "Page", "Timeline", "UnitRecord"]

#: the counters that have a column in the table `windows`
IN_WINDOWS = [name for name, each in declared(UnitCounts).items() if each.in_windows]
#: the counts of `Totals`, which only grow
_COUNTED = ("arrivals", "processed", "emitted", "dropped", "busy", "backpressured")
#: seconds of a window
PERIOD = 1.0
#: seconds after the end of a window when it is cut: the reports of sub-units around that moment are there by then
SLACK = 0.3


@value_class(frozen=True)
class UnitRecord:
    """One unit in one window. Rates are tuples a second."""

    unit: str
    kind: str
    #: seconds since tuples began to flow, to the end of the window
    t: float
    #: how long it was
    seconds: float
    #: sub-units at its end, and on average
    sub_units: int
    parallelism: float
    arrivals: float
    processed: float
    emitted: float
    dropped: float
    #: tuples in its inboxes at the end
    waiting: int
    #: of a spout: tuples due and not read at the end; None where it cannot be known
    lag: int | None
    #: seconds of processing, all sub-units together
    busy: float
    #: of a spout: share of the time in which it was backpressured; named as the column of the table, which keeps its name
    throttled: float
    #: seconds that one tuple takes one sub-unit; None when none was processed
    service: float | None
    #: milliseconds, of tuples that were told of in the window, None when there are none: of a bolt from the packing of the
    #: frame a tuple came in to the end of its processing; of a spout, where its tuples end in its own process, end to end
    p50_ms: float | None
    p99_ms: float | None
    #: what came in the window of the counters that are declared `in_windows`, by name
    counted: dict[str, float]


@value_class(frozen=True)
class Page:
    """The records of one window."""

    #: its end, seconds since the epoch
    at: float
    units: tuple[UnitRecord, ...]
    #: that have ended since the page before, with seconds since tuples began to flow until each was asked for
    changes: tuple[tuple[float, ChangeRecord], ...] = ()


@dataclass
class _Unit:
    """The part of one unit in the pages so far."""

    totals: Totals
    counts: SubUnitCounts = field(default_factory=SubUnitCounts)
    latency: Histogram | None = None
    changes: int = 0


class Timeline:
    """A record of a run by windows of time. Ask it at each tick, and once at the end."""

    def __init__(self, period: float = PERIOD, slack: float = SLACK) -> None:
        self._period, self._slack = period, slack
        self._began: float | None = None
        self._windows = 0
        self._at = 0.0
        self._told: dict[str, _Unit] = {}

    def next_page(self, driver: Driver, now: float) -> Page | None:
        """Return the page of the window that has ended; None when none has. After a pause it stands for several windows."""
        if driver.running_since is None:
            return None
        if self._began is None:
            self._began = self._at = driver.running_since
        ended = int((now - self._slack - self._began) / self._period + 1e-6)
        if ended <= self._windows:
            return None
        self._windows = ended
        end = self._began + ended * self._period
        sampler = driver.scaling.sampler
        sampler.forget({i for unit in driver.units.values() for i in unit.subs})
        # no more than was reported: what the sampler foresees for one that is silent may not come
        totals = {}
        for each in counted(driver):
            totals[each.name] = _counted(driver, each)
            if not each.head:
                seen = sampler.totals(driver.units[each.name], end).plus(_totals(each.chained, False, 0))
                totals[each.name] = _of_both(min, seen, totals[each.name])
        return self._page(driver, end, totals)

    def last(self, driver: Driver, now: float) -> Page | None:
        """Return the page of what is left; None when tuples never flowed."""
        if self._began is None:
            if driver.running_since is None:
                return None
            self._began = self._at = driver.running_since
        end = driver.ended_at if driver.ended_at is not None else now
        totals = {each.name: _counted(driver, each) for each in counted(driver)}
        return self._page(driver, max(end, self._at + 1e-3), totals)

    def _page(self, driver: Driver, end: float, totals: dict[str, Totals]) -> Page:
        start, self._at = self._at, end
        assert self._began is not None
        records: list[UnitRecord] = []
        changes: list[tuple[float, ChangeRecord]] = []
        for each in counted(driver):
            unit = driver.units[each.head or each.name]
            told = self._told.setdefault(each.name, _Unit(Totals()))
            records.append(self._record(each, unit, told, totals[each.name], start, end))
            if each.head:
                continue
            changes += [(max(0.0, record.at - self._began), record) for record in unit.changes[told.changes :]]
            told.changes = len(unit.changes)
        return Page(end, tuple(records), tuple(changes))

    def _record(
        self, each: UnitCounted, unit: Unit, told: _Unit, totals: Totals, start: float, end: float
    ) -> UnitRecord:
        seconds = end - start
        window = totals.since(told.totals, start, end)
        # what was foreseen too high is not told again: the next window has as much less
        told.totals = _of_both(max, totals, told.totals)
        bolt = bool(each.head) or unit.plan.kind == "bolt"
        latency = each.durations.latency if bolt else each.durations.end_to_end
        recent = latency if told.latency is None else latency.since(told.latency)
        told.latency = latency
        counts, before = each.counts, told.counts
        told.counts = counts
        assert self._began is not None
        return UnitRecord(
            unit=each.name,
            kind="bolt" if bolt else "spout",
            t=end - self._began,
            seconds=seconds,
            sub_units=window.width,
            parallelism=_mean(unit.history, start, end),
            arrivals=window.arrivals / seconds,
            processed=window.processed / seconds,
            emitted=window.emitted / seconds,
            dropped=window.dropped / seconds,
            waiting=round(window.waiting),
            lag=None if window.lag is None else round(window.lag),
            busy=window.busy,
            throttled=window.backpressured,
            service=window.service if bolt else None,
            p50_ms=1000 * recent.quantile(0.5) if len(recent) else None,
            p99_ms=1000 * recent.quantile(0.99) if len(recent) else None,
            counted={name: max(0, getattr(counts, name) - getattr(before, name)) for name in IN_WINDOWS},
        )


def _counted(driver: Driver, each: UnitCounted) -> Totals:
    """Return all that has been reported of the unit, that of dead sub-units too."""
    unit = driver.units[each.head or each.name]
    return _totals(each.counts, not each.head and unit.plan.kind == "spout", len(unit.subs))


def _totals(counts: SubUnitCounts, spout: bool, width: int) -> Totals:
    return Totals(
        arrivals=counts.tuples_out if spout else counts.arrivals,
        processed=counts.tuples_out if spout else counts.tuples_in,
        emitted=counts.tuples_out,
        dropped=counts.dropped,
        busy=counts.busy_seconds,
        waiting=counts.backlog,
        lag=None,
        backpressured=counts.backpressured,
        width=width,
    )


def _of_both(choose: Callable[[float, float], float], known: Totals, other: Totals) -> Totals:
    """Return `known`, with each of its counts chosen from both."""
    chosen: dict[str, Any] = {name: choose(getattr(known, name), getattr(other, name)) for name in _COUNTED}
    return known._replace(**chosen)


def _mean(history: list[tuple[float, int]], start: float, end: float) -> float:
    """Return the average number of sub-units between two instants."""
    if not history:
        return 0.0
    area = 0.0
    for (since, width), (until, _) in pairwise([*history, (max(end, history[-1][0]), 0)]):
        area += width * max(0.0, min(until, end) - max(since, start))
    return round(area / (end - start), 6)  # a whole number where nothing changed
