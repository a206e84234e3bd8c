"""Sub-units go to cheaper hosts that have slots free, where hosts.toml says `strategy = "cheapest"`.

A load that falls leaves slots free wherever its sub-units were merged, and hosts that join may cost less. One sub-unit moves at
a time, live, while nothing else changes; so hosts that cost most become empty first, and can be given back.
"""

from __future__ import annotations

from esault.control.placement.placement import Cluster
from esault.control.placement.resources import slot_request_of
from esault.control.run.driver import Driver
from esault.errors import UsageError

__all__ = ["CheaperHosts"]

#: seconds between two moves, and after the run has begun to flow: a load that changes decides more than a price
EVERY = 10.0
#: share of the price that a move must save
WORTH = 0.1


class CheaperHosts:
    """Call `step` a few times a second."""

    def __init__(self) -> None:
        self._next_at: float | None = None

    def step(self, driver: Driver, now: float) -> None:
        """Begin the move that saves most, if one does and may begin now."""
        cluster = driver.resources
        if not isinstance(cluster, Cluster) or cluster.rules.strategy != "cheapest":
            return
        if self._next_at is None or driver.phase != "running" or driver.draining:
            self._next_at = now + EVERY
        if now < self._next_at or driver.busy or any(unit.changing for unit in driver.units.values()):
            return
        self._next_at = now + EVERY
        self._move(driver, cluster, now)

    @staticmethod
    def _move(driver: Driver, cluster: Cluster, now: float) -> None:
        prices = {name: host.slot_price for name, host in cluster.hosts.items()}
        places = [
            (prices[driver.places.hosts[i]], unit.name, i)
            for unit in driver.units.values()
            for i in unit.subs
            if driver.places.hosts.get(i) in prices
        ]
        for price, name, incarnation in sorted(places, key=lambda each: (-each[0], each[1:])):
            unit, request = driver.units[name], slot_request_of(driver.plan, name, None)
            for host in sorted(prices, key=lambda host: (prices[host], host)):
                if prices[host] > (1.0 - WORTH) * price or price == 0.0:
                    break
                if not cluster.fits(request, host):
                    continue
                try:
                    driver.commands.elastic(name, 1)
                    reason = f"a slot costs {prices[host]:g} an hour on {host}, and {price:g} where it was"
                    unit.move(incarnation, now, reason, "cheapest", host)
                except UsageError:
                    continue
                driver.deliver(now)
                return
