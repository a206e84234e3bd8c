"""The choice of a host for a new sub-unit: what the unit needs and avoids, free slots, and the hosts of its neighbours.

In this order, the first that tells two hosts apart decides:

1. only hosts that take newcomers (neither draining nor lost) and offer what the unit needs
2. one with memory left before one that runs short of it
3. one with a free slot, that the budget in money can still buy, before one without: a sub-unit that replaces a dead one is made even
   where all slots are taken
4. fewer sub-units that it should be apart from: other replicas of the same unit, and what the rules name
5. `spread`: the smaller share of slots taken; then more neighbours (units that it gets from or sends to).
   `pack`: more neighbours; then the larger share of slots taken. `cheapest`: the lower price of a slot; then as `pack`
6. the name
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from esault.control.placement.resources import Slot, SlotRequest
from esault.elasticity.budget import ROUNDING
from esault.errors import UsageError
from esault.value_class import value_class

__all__ = ["Cluster", "HostRecord", "PlacementRules", "SlotCost"]


@value_class(frozen=True)
class PlacementRules:
    """The rules of a run about its hosts."""

    #: "spread", "pack" or "cheapest"
    strategy: str = "spread"
    #: unit -> what its hosts must offer
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: unit -> units whose hosts it avoids
    apart: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class HostRecord:
    """One host that this run has slots on."""

    name: str
    slots: int
    offers: frozenset[str]
    #: what a slot costs an hour
    slot_price: float = 0.0
    draining: bool = False
    #: numbers of the slots that are free, and of those that are not
    free: set[int] = field(default_factory=set)
    held: set[int] = field(default_factory=set)
    #: slots that the node would give in addition, of those that other runs hold or none
    obtainable: int = 0
    #: other runs that hold slots of this host: name of the topology, priority (None: it shares with no other), slots
    others: tuple[tuple[str, int | None, int], ...] = ()
    #: unit -> sub-units that are here
    units: dict[str, int] = field(default_factory=dict)
    #: another number each time that a host of this name joins
    life: int = 0

    @property
    def used(self) -> int:
        """Sub-units that are here."""
        return sum(self.units.values())

    @property
    def taken(self) -> int:
        """Return how many slots are not free."""
        return len(self.held)


@dataclass
class SlotCost:
    """The cost of the run's sub-units on one host."""

    #: what a slot costs there an hour
    slot_price: float
    #: seconds for which sub-units had slots there, added up
    slot_seconds: float = 0.0

    @property
    def cost(self) -> float:
        """Return the money."""
        return self.slot_price * self.slot_seconds / 3600


class Cluster:
    """The slots of several hosts, which come and go."""

    def __init__(self, rules: PlacementRules | None = None, hourly_budget: float = 0.0) -> None:
        """`hourly_budget`: what all slots that are taken may cost an hour, at most; 0: any."""
        self.rules = rules or PlacementRules()
        self._hourly_budget = hourly_budget
        #: what those that are taken cost an hour at most at a time
        self.most_hourly = 0.0
        #: hosts by name, and how many have joined so far
        self.hosts: dict[str, HostRecord] = {}
        self._joined = 0
        #: names of those that run short of memory
        self.short: frozenset[str] = frozenset()
        #: by host, of all that there were
        self.costs: dict[str, SlotCost] = {}
        self._charged_at: float | None = None
        #: for which it was charged
        self.charged_seconds = 0.0

    # hosts come and go -------------------------------------------------------------------------------

    def join(self, name: str, slots: int, offers: Iterable[str] = (), slot_price: float = 0.0) -> None:
        """Add a host, which offers slots from now on."""
        self._joined += 1
        free = set(range(slots))
        self.hosts[name] = HostRecord(name, slots, frozenset(offers), slot_price, free=free, life=self._joined)
        self.costs.setdefault(name, SlotCost(slot_price)).slot_price = slot_price

    def drain(self, name: str) -> None:
        """Have a host take no new sub-units any more."""
        if name in self.hosts:
            self.hosts[name].draining = True

    def lose(self, name: str) -> None:
        """Forget a host that is gone, with all that was on it."""
        self.hosts.pop(name, None)

    def resize(self, name: str, slots: int, obtainable: int = 0) -> None:
        """Hold no more than so many slots on a host: free ones go at once, and those that are taken when they are given back."""
        host = self.hosts[name]
        host.slots, host.obtainable = slots, obtainable
        number = 0
        while host.taken + len(host.free) < slots:
            if number not in host.held:
                host.free.add(number)
            number += 1
        while host.free and host.taken + len(host.free) > slots:
            host.free.discard(max(host.free))

    def charge(self, now: float) -> None:
        """Add up what sub-units have cost since the last call, in which they were where they are now."""
        seconds = 0.0 if self._charged_at is None else max(0.0, now - self._charged_at)
        self._charged_at = now
        self.charged_seconds += seconds
        for name, host in self.hosts.items():
            self.costs[name].slot_seconds += host.taken * seconds

    # slots -------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """All slots there are within the budget, those of draining hosts left out."""
        return self.free + sum(host.taken for host in self.hosts.values() if not host.draining)

    @property
    def free(self) -> int:
        """Free slots on hosts that take new sub-units; the cheapest ones, as far as the budget goes."""
        return self._bought((host.slot_price, len(host.free)) for host in self.hosts.values() if not host.draining)

    @property
    def obtainable(self) -> int:
        """Slots that nodes would give in addition, within the budget."""
        hosts = [host for host in self.hosts.values() if not host.draining]
        return self._bought((host.slot_price, len(host.free) + host.obtainable) for host in hosts) - self.free

    def _bought(self, prices: Iterable[tuple[float, int]]) -> int:
        left, found = self._left, 0
        for price, number in sorted(prices):
            bought = number if price * number <= max(0.0, left) else max(0, int(left / price))
            left, found = left - bought * price, found + bought
        return found

    @property
    def hourly(self) -> float:
        """Return what the slots that are taken cost an hour."""
        return sum(host.slot_price * host.taken for host in self.hosts.values())

    @property
    def _left(self) -> float:
        return self._hourly_budget * (1.0 + ROUNDING) - self.hourly if self._hourly_budget else math.inf

    def _has_room(self, host: HostRecord) -> bool:
        return bool(host.free) and host.slot_price <= self._left

    def allocate(self, request: SlotRequest) -> tuple[str, Slot | None]:
        """Return the host for a new sub-unit, and its slot there; None where all are taken. Raises UsageError."""
        if request.beside and request.host in self.hosts:
            host = self.hosts[request.host]
        else:
            host = self._named(request) if request.host is not None and not request.beside else self._best(request)
        host.units[request.unit] = host.units.get(request.unit, 0) + 1
        return host.name, self.slot_on(host.name)

    def slot_on(self, name: str) -> Slot | None:
        """Return a slot of this host for a sub-unit that is there already; None where all are taken."""
        host = self.hosts.get(name)
        if host is None or not self._has_room(host):
            return None
        number = min(host.free)
        host.free.discard(number)
        host.held.add(number)
        self.most_hourly = max(self.most_hourly, self.hourly)
        return Slot(name, number)

    def life(self, name: str) -> int:
        """Return a number that is another one once the host was lost and has come back empty; 0: it is not there."""
        return self.hosts[name].life if name in self.hosts else 0

    def leave(self, request: SlotRequest, name: str, slot: Slot | None) -> None:
        """Forget a sub-unit that is gone from this host, and take its slot back if it had one."""
        host = self.hosts.get(name)
        if host is None or host.units.get(request.unit, 0) < 1:
            return
        host.units[request.unit] -= 1
        if slot is not None and slot.number in host.held:
            host.held.discard(slot.number)
            if host.taken + len(host.free) < host.slots:
                host.free.add(slot.number)

    def open_to(self, request: SlotRequest) -> bool:
        """Return whether a host that does not drain offers what is needed."""
        return any(not host.draining and not self._missing(host, request) for host in self.hosts.values())

    def fits(self, request: SlotRequest, name: str) -> bool:
        """Return whether this host would take a newcomer: it has a free slot, what is needed, and nothing to be apart from."""
        host = self.hosts[name]
        avoided = {*request.replicas, *self.rules.apart.get(request.original, ())}
        room = self._has_room(host) and not host.draining and name not in self.short
        return room and not self._missing(host, request) and not any(host.units.get(unit) for unit in avoided)

    def _named(self, request: SlotRequest) -> HostRecord:
        assert request.host is not None
        host = self.hosts.get(request.host)
        if host is None:
            raise UsageError(f"there is no host {request.host!r}; there are: {', '.join(self.hosts) or 'none'}")
        if host.draining or not self._has_room(host):
            why = f"has all of its {host.slots} slots taken"
            if host.draining:
                why = "drains"
            elif host.free:
                why = f"costs {host.slot_price:g} a slot, and of the budget of {self._hourly_budget:g}/h {self.hourly:g} is spent"
            raise UsageError(f"unit {request.unit!r} cannot go to host {request.host!r}: it {why}")
        missing = self._missing(host, request)
        if missing:
            raise UsageError(
                f"unit {request.unit!r} cannot go to host {request.host!r}: it needs {missing}, which is not offered there"
            )
        return host

    def _missing(self, host: HostRecord, request: SlotRequest) -> str:
        return ", ".join(each for each in self.rules.needs.get(request.original, ()) if each not in host.offers)

    def _best(self, request: SlotRequest) -> HostRecord:
        fitting = [host for host in self.hosts.values() if not self._missing(host, request)]
        if not fitting:
            what = ", ".join(self.rules.needs.get(request.original, ()))
            raise UsageError(
                f"unit {request.unit!r} needs {what}, which no host offers" if what else "there is no host (any more)"
            )
        taking = [host for host in fitting if not host.draining] or fitting
        strategy = self.rules.strategy
        avoided = {*request.replicas, *self.rules.apart.get(request.original, ())}

        def badness(host: HostRecord) -> tuple[object, ...]:
            share = host.used / max(1, host.slots)
            near = -sum(n for unit, n in host.units.items() if unit in request.neighbours)
            unwanted = sum(n for unit, n in host.units.items() if unit in avoided)
            return (
                host.name in self.short,
                not self._has_room(host),
                unwanted,
                host.slot_price if strategy == "cheapest" else 0.0,
                *((share, near) if strategy == "spread" else (near, -share)),
                host.name,
            )

        return min(taking, key=badness)
