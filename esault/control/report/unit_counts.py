"""The counts of a unit wherever it ran: in sub-units of its own, and in the processes of the units that it was chained to."""

from __future__ import annotations

from collections.abc import Iterator

from esault.control.run.driver import Driver
from esault.control.units.measurements import Measurements, total
from esault.counters import UnitDurations
from esault.messages.status import SubUnitCounts

__all__ = ["UnitCounted", "counted"]


class UnitCounted:
    """Counts and histograms of one unit."""

    def __init__(self, name: str, head: str, own: Measurements | None, chained: list[Measurements]) -> None:
        """`head`: the unit that it is chained to now, empty where it has sub-units of its own; `chained`: what was measured there."""
        self.name = name
        self.head = head
        #: what was measured in processes of others
        self.chained = total(each.counts for each in chained)
        self._parts = [*chained, *([own] if own is not None else [])]

    @property
    def counts(self) -> SubUnitCounts:
        """All counts of the unit."""
        return total(each.counts for each in self._parts)

    @property
    def durations(self) -> UnitDurations:
        """All durations of the unit."""
        merged = UnitDurations()
        for each in self._parts:
            for name, times in each.durations:
                getattr(merged, name).merge(times)
        return merged


def counted(driver: Driver) -> Iterator[UnitCounted]:
    """Yield the units of a run; those that are chained come behind the unit that they are chained to."""
    everywhere: dict[str, list[Measurements]] = {}
    for unit in driver.units.values():
        for name, measured in unit.measurements.chained.items():
            everywhere.setdefault(name, []).append(measured)
    for name, unit in driver.units.items():
        yield UnitCounted(name, "", unit.measurements, everywhere.get(name, []))
        for chained, head in driver.plan.chained.items():
            if head == name:
                yield UnitCounted(chained, head, None, everywhere.get(chained, []))
