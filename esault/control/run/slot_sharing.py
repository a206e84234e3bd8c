"""Slots that a run shares with others on the same hosts: what it wants of each, and how it comes down where it is *preempted*.

It holds what it uses, and for a while what it used of late. Where a host's node lets it hold fewer, sub-units there are merged with their
neighbours, one after another, while tuples flow: nothing is lost or repeated. Only units that a policy scales shrink, to no less than
`min_parallelism`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from esault.control.placement.placement import Cluster, HostRecord
from esault.control.run.driver import Driver
from esault.control.units.unit import Unit
from esault.errors import UsageError

__all__ = ["GIVE_BACK_AFTER", "HostDemand", "SlotSharing"]

#: seconds for which a slot is kept that is not used any more: a load that swings is no reason to give it back
GIVE_BACK_AFTER = 10.0
#: seconds for which a node is asked for slots that a policy wanted: it does not say so at each look, such as while a unit changes, and
#: who is to give them needs a while
ASKED_FOR = 10.0
#: seconds between two looks at how busy units are
LOOK_EVERY = 1.0


@dataclass(frozen=True)
class HostDemand:
    """The slots that a run holds of a host, would hold if it could, and cannot do without now."""

    held: int
    wanted: int
    least: int


@dataclass
class _Kept:
    """The most slots that were used of late."""

    slots: int
    at: float


class SlotSharing:
    """Call `step` and `demands` a few times a second, and `granted` when a node has said something."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        #: host -> slots that it is asked for in all, and since when
        self._asks: dict[str, tuple[int, float]] = {}
        #: sub-units that are being merged away, and their hosts
        self._leaving: dict[int, tuple[str, str]] = {}
        #: unit -> (when, seconds that it was busy by then, share of its time that it was busy, in sub-units)
        self._busy: dict[str, tuple[float, float, float]] = {}

    def granted(self, cluster: Cluster, host: str, slots: int, obtainable: int, now: float) -> None:
        """Take what a node allows on its host."""
        before = cluster.hosts[host].slots
        cluster.resize(host, slots, obtainable)
        if slots > before:  # they were wanted, and are about to be used
            self._kept[host] = _Kept(slots, now)

    # what is wanted ----------------------------------------------------------------------------------

    def demands(self, driver: Driver, cluster: Cluster, now: float) -> dict[str, HostDemand]:
        """Return what to tell each node, and give back what has not been used for a while."""
        if driver.phase == "running":
            self._ask(driver.scaling.awaited + driver.places.lacking(now), cluster, now)
        found, spare = {}, self._spare(driver, cluster)
        for name, host in cluster.hosts.items():
            if driver.phase == "running":
                kept = self._of_late(name, host, now)
                if kept < host.slots:
                    cluster.resize(name, kept, host.obtainable)
            kept = max(self._kept[name].slots if name in self._kept else host.slots, host.slots)
            held = max(host.slots, host.taken)
            asked, _ = self._asks.get(name, (0, now))
            found[name] = HostDemand(held, max(kept, host.taken, asked), max(0, host.taken - spare.get(name, 0)))
        for name in [each for each in self._kept if each not in cluster.hosts]:
            del self._kept[name]
        return found

    def _ask(self, lacking: int, cluster: Cluster, now: float) -> None:
        """Ask nodes for slots that are lacking, the cheapest first; what has been asked for is waited for."""
        hosts = {name: host for name, host in cluster.hosts.items() if not host.draining}
        self._asks = {
            name: (slots, at)
            for name, (slots, at) in self._asks.items()
            if name in hosts and slots > hosts[name].slots and now < at + ASKED_FOR
        }
        coming = {name: slots - hosts[name].slots for name, (slots, _) in self._asks.items()}
        lacking -= sum(coming.values())
        for name, host in sorted(hosts.items(), key=lambda each: (each[1].slot_price, each[0])):
            more = min(lacking, host.obtainable - coming.get(name, 0))
            if more > 0:
                self._asks[name] = host.slots + coming.get(name, 0) + more, now
                lacking -= more

    def _of_late(self, name: str, host: HostRecord, now: float) -> int:
        kept = self._kept.setdefault(name, _Kept(host.slots, now))
        if host.taken >= kept.slots or now >= kept.at + GIVE_BACK_AFTER:
            kept.slots, kept.at = host.taken, now
        return kept.slots

    # coming down -------------------------------------------------------------------------------------

    def step(self, driver: Driver, cluster: Cluster, now: float) -> None:
        """Begin the merges by which hosts come down to what the run may hold there."""
        self._look(driver, now)
        self._leaving = {
            incarnation: (unit, host)
            for incarnation, (unit, host) in self._leaving.items()
            if unit in driver.units and incarnation in driver.units[unit].subs and driver.units[unit].changing
        }
        if driver.phase != "running" or driver.draining or driver.busy:
            return
        for name, host in cluster.hosts.items():
            over = host.taken - host.slots - sum(where == name for _, where in self._leaving.values())
            if over > 0:
                self._merge_one(driver, name, now)

    def _merge_one(self, driver: Driver, host: str, now: float) -> None:
        able = [unit for unit in self._shrinkable(driver) if self._left(unit) > unit.plan.min_parallelism]
        for unit in sorted(able, key=self._busy_with_one_fewer):
            if unit.changing:
                return  # it is worth waiting for: another one would miss its sub-unit more
            owners = unit.table.owners() if unit.table is not None else []
            here = [i for i in unit.subs if driver.places.hosts.get(i) == host and i in owners]
            if not here:
                continue
            try:
                driver.commands.elastic(unit.name)
                unit.merge(here[-1], now, f"slots of host {host} go to a run of higher priority", "preemption")
            except UsageError:
                continue
            self._leaving[here[-1]] = unit.name, host
            driver.deliver(now)
            return

    @staticmethod
    def _shrinkable(driver: Driver) -> Iterator[Unit]:
        for name, unit in driver.units.items():
            if name in driver.scaling.judges and unit.plan.replicas == 1:
                yield unit

    def _spare(self, driver: Driver, cluster: Cluster) -> Counter[str]:
        """Return how many sub-units each host can lose, those that are on their way out among them, and all together no more than can be.

        Those of a change that is on, or of a run that is being built, are among them: who wants their slots waits until they can be merged.
        Hosts that have to come down come first: what one was asked for is not offered by another.
        """
        found: Counter[str] = Counter()
        hosts = sorted(cluster.hosts, key=lambda name: (cluster.hosts[name].taken <= cluster.hosts[name].slots, name))
        for unit in self._shrinkable(driver):
            here = Counter(driver.places.hosts.get(i, "") for i in unit.subs)
            left = max(0, sum(here.values()) - unit.plan.min_parallelism)
            for name in hosts:
                n = min(left, here[name])
                found[name] += n
                left -= n
        return found

    def _look(self, driver: Driver, now: float) -> None:
        for name, unit in driver.units.items():
            at, seconds, _ = self._busy.get(name, (now - LOOK_EVERY, 0.0, 0.0))
            if now >= at + LOOK_EVERY:
                counted = unit.measurements.counts.busy_seconds
                self._busy[name] = now, counted, max(0.0, counted - seconds) / (now - at)

    def _busy_with_one_fewer(self, unit: Unit) -> tuple[float, str]:
        _, _, busy = self._busy.get(unit.name, (0.0, 0.0, 0.0))
        return busy / max(1, self._left(unit) - 1), unit.name

    def _left(self, unit: Unit) -> int:
        owners = unit.table.owners() if unit.table is not None else []
        return unit.width - sum(name == unit.name and i in owners for i, (name, _) in self._leaving.items())
