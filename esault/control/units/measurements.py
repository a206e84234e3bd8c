"""The reports of the sub-units of a unit, the dead ones included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import fields, replace

from esault.counters import UnitDurations, declared
from esault.histogram import Histogram
from esault.messages.status import ChainedCounts, Status, SubUnitCounts
from esault.messages.user_metrics import MetricReading, add_up

__all__ = ["Measurements", "total"]

_NOW = [name for name, each in declared(SubUnitCounts).items() if each.gauge]


def total(rows: Iterable[SubUnitCounts]) -> SubUnitCounts:
    """Return the sums of these counts."""
    rows = list(rows)
    return SubUnitCounts(**{f.name: sum(getattr(r, f.name) for r in rows) for f in fields(SubUnitCounts)})


def _as_status(status: Status, counts: ChainedCounts) -> Status:
    return Status(status.incarnation, status.now, counts.rows, counts.durations)


class Measurements:
    """The last status of every sub-unit, living or dead; counts of the dead stay, what they held is lost."""

    def __init__(self) -> None:
        self._living: dict[int, Status] = {}
        #: those that are over, and what they counted, in one sum: a run may have thousands of them
        self._over: set[int] = set()
        self._past = SubUnitCounts()
        #: metrics of the user's own, of those that are over: gauges ended with them
        self._past_metrics: tuple[MetricReading, ...] = ()
        self._past_durations = UnitDurations()
        #: rows that sinks of those that are over had committed, by name of the sink
        self._past_landed: Counter[str] = Counter()
        #: of the bolts that are chained to the unit, by name
        self.chained: dict[str, Measurements] = {}

    def update(self, status: Status) -> None:
        """Take a report of a living sub-unit."""
        if status.incarnation not in self._over:
            self._living[status.incarnation] = status
            for name, counts in status.chained.items():
                self._of_chained(name).update(_as_status(status, counts))

    def _of_chained(self, name: str) -> Measurements:
        return self.chained.setdefault(name, Measurements())

    def died(self, incarnation: int, state_too: bool = True) -> Status | None:
        """Count a sub-unit that died, and return its last report, if there is one. `state_too`: its state is lost too."""
        status = self._living.pop(incarnation, None)
        self._over.add(incarnation)
        for each in self.chained.values():
            each.died(incarnation)
        if status is not None:
            self._bury(status)
            lost = SubUnitCounts(roots_lost=status.rows.roots_open, state_lost=status.rows.elements if state_too else 0)
            self._past = total((self._past, lost))
        return status

    def _bury(self, status: Status) -> None:
        self._past = total((self._past, replace(status.rows, **dict.fromkeys(_NOW, 0))))
        self._past_landed.update(status.landed)
        kept = (each for each in status.metrics if each.kind != "gauge")
        self._past_metrics = tuple(add_up((*self._past_metrics, *kept)))
        self._past_durations.add(status.durations)

    def left(self, status: Status) -> None:
        """Take the last report of a sub-unit that stopped in order while its unit goes on."""
        self._living.pop(status.incarnation, None)
        self._over.add(status.incarnation)
        for name, counts in status.chained.items():
            self._of_chained(name).left(_as_status(status, counts))
        self._bury(status)

    def last(self, incarnation: int) -> Status | None:
        """Return the last report of a living sub-unit; None if it made none."""
        return self._living.get(incarnation)

    @property
    def counts(self) -> SubUnitCounts:
        """All counts of the unit."""
        return total((self._past, *(s.rows for s in self._living.values())))

    @property
    def landed(self) -> dict[str, int]:
        """Rows that the unit's sinks have committed, by name of the sink, as far as its sub-units have told."""
        landed = self._past_landed.copy()
        for status in self._living.values():
            landed.update(status.landed)
        return dict(landed)

    @property
    def split_keys(self) -> dict[str, dict[str, int]]:
        """Hot keys that its sub-units split now: unit that gets them -> key as text -> over how many sub-units."""
        found: dict[str, dict[str, int]] = {}
        for status in self._living.values():
            for unit, keys in status.split_keys.items():
                for key, over in keys.items():
                    of_unit = found.setdefault(unit, {})
                    of_unit[key] = max(over, of_unit.get(key, 0))
        return found

    @property
    def oldest_roots(self) -> dict[int, tuple[int, float]]:
        """By sub-unit of a spout: number and opening of its oldest root that is not processed."""
        return {i: status.oldest_root for i, status in self._living.items() if status.oldest_root is not None}

    @property
    def metrics(self) -> tuple[MetricReading, ...]:
        """Metrics of the user's own, of all sub-units together; gauges by sub-unit."""
        return tuple(
            add_up(
                (
                    *self._past_metrics,
                    *(
                        each.with_labels(sub_unit=incarnation) if each.kind == "gauge" else each
                        for incarnation, status in self._living.items()
                        for each in status.metrics
                    ),
                )
            )
        )

    @property
    def durations(self) -> UnitDurations:
        """All durations of the unit."""
        return UnitDurations(**{name: self.histogram(name) for name in UnitDurations.declared()})

    def histogram(self, name: str) -> Histogram:
        """Return the durations of that name of all sub-units together."""
        merged = Histogram()
        merged.merge(getattr(self._past_durations, name))
        for status in self._living.values():
            if name in status.durations:
                merged.merge(Histogram.from_snapshot(status.durations[name]))
        return merged

    @property
    def watermark(self) -> float | None:
        """The least of the unit's sub-units; None where none knows one."""
        known = [s.watermark for s in self._living.values() if s.watermark is not None]
        return min(known, default=None)

    @property
    def progress(self) -> tuple[float, float] | None:
        """(done, total) of a spout's sub-units together; None where one of them cannot know."""
        parts = [s.progress for s in self._living.values()]
        if not parts or any(p is None for p in parts):
            return None
        return sum(p[0] for p in parts if p), sum(p[1] for p in parts if p)
