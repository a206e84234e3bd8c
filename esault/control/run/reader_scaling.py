"""Readers of sources in splits that become more and fewer by themselves: under `auto`, where nothing was said of how many there are."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from esault.control.units.unit import Unit
from esault.elasticity.policy import DEFAULT
from esault.elasticity.reader_growth import ReaderGrowth, ReaderLoad
from esault.errors import UsageError
from esault.topology.reading_order import why_alone

if TYPE_CHECKING:
    from esault.control.run.driver import Driver

__all__ = ["ReaderScaling"]

#: seconds between two looks
LOOK_EVERY = 0.25
#: share of a host's processors from which there is none to spare
HOST_FULL = 0.9


class ReaderScaling:
    """Looks at the units that read splits, each by itself."""

    def __init__(self, driver: Driver, said: Collection[str]) -> None:
        """`said`: units of which it was said how many readers they begin with."""
        self._driver = driver
        self._look_at = 0.0
        self._growths = {
            name: ReaderGrowth(unit.plan.min_parallelism, unit.plan.max_parallelism)
            for name, unit in driver.units.items()
            if unit.splits is not None
            and name not in said
            and driver.scaling.policy_name(unit.plan) == DEFAULT
            and why_alone(driver.plan, unit.plan) is None
        }

    def step(self, now: float) -> bool:
        """Look whether there is to be another number of readers; return whether anything happened."""
        driver = self._driver
        if not self._growths or now < self._look_at or driver.draining or driver.busy:
            return False
        self._look_at = now + LOOK_EVERY
        spare = sum(host.cores * max(0.0, HOST_FULL - host.cpu) for host in driver.hosts)
        for name, growth in self._growths.items():
            unit = driver.units[name]
            found = growth.look(reader_load(unit, now), spare)
            if found is None or unit.changing:
                continue
            try:
                driver.commands.scale(name, min(found[0], unit.width + driver.places.free()), now, found[1], DEFAULT)
            except UsageError:
                continue  # it is looked at again in a moment
            return True
        return False


def reader_load(unit: Unit, now: float) -> ReaderLoad:
    """Return what the readers of a unit have done so far."""
    assert unit.splits is not None
    living = [last for i in unit.subs if (last := unit.measurements.last(i)) is not None]
    usages = [last.usage for last in living]
    return ReaderLoad(
        max((last.now for last in living), default=now),
        max(1, len(unit.subs)),
        # One that waits for a processor has work for it.
        sum(each.cpu + (each.cpu_wait or 0.0) for each in usages if each) if all(usages) else None,
        sum(last.rows.backpressured for last in living),
        *unit.splits.counts,
    )
