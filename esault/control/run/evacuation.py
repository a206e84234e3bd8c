"""Draining hosts hand over their sub-units, one per unit at a time, while tuples flow.

Bolts move as by any planned change: nothing is lost or repeated. Where no slot is free elsewhere, or the budget is spent, one is merged
with its neighbours, as far as its unit may shrink. A spout's part cannot be moved; with checkpoints all go back to
the newest one when only spouts are left, which counts everything once; without, the host waits until the spout has ended.
"""

from __future__ import annotations

from esault.control.placement.placement import Cluster
from esault.control.placement.resources import slot_request_of
from esault.control.run.driver import Driver
from esault.errors import UsageError

__all__ = ["Evacuation"]

#: seconds between two looks
EVERY = 0.2


class Evacuation:
    """The moves off draining hosts. Call `step` a few times a second."""

    def __init__(self) -> None:
        self._next_at = 0.0
        self._told: set[str] = set()

    def step(self, driver: Driver, cluster: Cluster, now: float) -> None:
        """Begin the moves that can begin now."""
        draining = {name for name, host in cluster.hosts.items() if host.draining}
        if not draining or now < self._next_at or driver.phase != "running" or driver.draining or driver.busy:
            return
        self._next_at = now + EVERY
        staying: dict[str, list[str]] = {}
        moving = False
        for name, unit in driver.units.items():
            here = [i for i in unit.subs if driver.places.hosts.get(i) in draining]
            if not here:
                continue
            if unit.plan.kind == "spout":
                for incarnation in here:
                    if not unit.subs[incarnation].ended:
                        staying.setdefault(driver.places.hosts[incarnation], []).append(f"{name}/{incarnation}")
                continue
            if not cluster.open_to(slot_request_of(driver.plan, name, None)):
                why = f"no other offers what {name!r} needs"
                if draining.issuperset(cluster.hosts):
                    why = "there is no other that does not drain"
                for incarnation in here:
                    self._tell(driver, f"{name}/{incarnation} stays on its draining host: {why}")
                continue
            moving = True
            owners = unit.table.owners() if unit.table is not None else []
            for incarnation in here:
                if incarnation in owners:
                    try:
                        full = driver.places.free() < 1 and unit.width > unit.plan.min_parallelism
                        (driver.commands.merge if full else driver.commands.move)(name, incarnation, now)
                    except UsageError as error:
                        self._tell(driver, f"{name}/{incarnation} stays on its draining host so far: {error}")
                    break
        if staying and not moving:
            self._leave_spouts(driver, staying, now)

    def _leave_spouts(self, driver: Driver, staying: dict[str, list[str]], now: float) -> None:
        for host, spouts in staying.items():
            spooled = any(driver.units[each.rpartition("/")[0]].plan.spooled for each in spouts)
            if driver.completed is not None and not spooled and cluster_has_room(driver):
                why = f"host {host} drains and {', '.join(spouts)} cannot be moved"
                driver.going_back.begin(why, now, counted=False)
                return
            self._tell(
                driver, f"host {host} drains: {', '.join(spouts)} cannot be moved and stays until its source has ended"
            )

    def _tell(self, driver: Driver, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            driver.notices.append(text)


def cluster_has_room(driver: Driver) -> bool:
    """Return whether hosts that do not drain have slots for all sub-units of the run."""
    return driver.resources.total >= sum(len(unit.subs) for unit in driver.units.values())
