"""Slots: places for sub-units, asked for and given back whatever manages them (eSault paper, resource interface)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import Protocol

from esault.elasticity.budget import Budget
from esault.errors import UsageError
from esault.topology.plan import Plan
from esault.value_class import value_class

__all__ = ["OneHost", "Places", "Resources", "Slot", "SlotRequest", "slot_request_of"]


@value_class(frozen=True)
class Slot:
    """One place on one host."""

    host: str
    number: int


@value_class(frozen=True)
class SlotRequest:
    """A sub-unit that needs a place, as far as it is known."""

    unit: str
    #: the unit as the user wrote it, where `unit` is a replica of it
    original: str = ""
    #: units that it gets from or sends to
    neighbours: frozenset[str] = frozenset()
    #: other replicas of the same unit: a host that is lost should not take two of them
    replicas: frozenset[str] = frozenset()
    #: the one host that will do
    host: str | None = None
    #: ... since the process that it goes on in is there, whatever else holds of that host
    beside: bool = False


def slot_request_of(plan: Plan, name: str, host: str | None, beside: bool = False) -> SlotRequest:
    """Return the request of a sub-unit of this unit; the empty name stands for ack servers. The rest: see `SlotRequest`."""
    unit = plan.units.get(name)
    if unit is None:
        return SlotRequest(name, name, host=host)
    near = frozenset([*unit.targets, *(i.source for i in unit.inputs)])
    return SlotRequest(name, unit.original or name, near, frozenset(plan.apart(name)), host, beside)


class Resources(Protocol):
    """An owner of slots: this machine, or the hosts of a cluster."""

    #: names of hosts that run short of memory: newcomers go elsewhere while they can
    short: frozenset[str]

    @property
    def total(self) -> int:
        """All slots there are."""
        ...

    @property
    def free(self) -> int:
        """Slots that are free."""
        ...

    @property
    def obtainable(self) -> int:
        """Slots that would come in addition if they were asked for, such as those of runs of lower priority."""
        ...

    def allocate(self, request: SlotRequest) -> tuple[str, Slot | None]:
        """Return the host for a new sub-unit, and its slot there; None where all are taken. Raises UsageError."""
        ...

    def slot_on(self, name: str) -> Slot | None:
        """Return a slot of this host for a sub-unit that is there already; None where all are taken."""
        ...

    def life(self, name: str) -> int:
        """Return a number that is another one once the host was lost and has come back empty; 0: it is not there."""
        ...

    def leave(self, request: SlotRequest, name: str, slot: Slot | None) -> None:
        """Forget a sub-unit that is gone from this host, and take its slot back if it had one."""
        ...


class OneHost:
    """The slots of this machine."""

    def __init__(self, host: str, slots: int) -> None:
        self._host = host
        self.short: frozenset[str] = frozenset()
        self._all = frozenset(range(slots))
        self._free = set(self._all)

    @property
    def total(self) -> int:
        """All slots there are."""
        return len(self._all)

    @property
    def free(self) -> int:
        """Slots that are free."""
        return len(self._free)

    @property
    def obtainable(self) -> int:
        """None: no other run has slots of these."""
        return 0

    def allocate(self, request: SlotRequest) -> tuple[str, Slot | None]:
        """Return this host and its free slot with the lowest number, if any. Raises UsageError for any other host."""
        if request.host not in (None, self._host):
            raise UsageError(
                f"unit {request.unit!r} cannot move to {request.host!r}: all of its sub-units run on one host"
            )
        return self._host, self.slot_on(self._host)

    def slot_on(self, name: str) -> Slot | None:
        """Return the free slot with the lowest number; None where all are taken."""
        if not self._free:
            return None
        number = min(self._free)
        self._free.discard(number)
        return Slot(self._host, number)

    def life(self, name: str) -> int:
        """One: it is lost with the run."""
        return 1

    def leave(self, request: SlotRequest, name: str, slot: Slot | None) -> None:
        """Give a slot back. One that is free already stays free."""
        if slot is not None and slot.number in self._all:
            self._free.add(slot.number)


class Places:
    """The host and the slot of each sub-unit."""

    def __init__(self, resources: Resources, budget: Budget | None = None) -> None:
        """`budget`: of one in money `resources` knows, and gives no slot beyond."""
        self._resources = resources
        self.budget = budget or Budget()
        #: the most sub-units that there were at a time
        self.most_held = 0
        #: slots that were asked for by hand and are not there yet, and until when they are wanted
        self._asked, self._asked_until = 0, 0.0
        #: what each has asked for and got, and the life of its host in which it did
        self._requests: dict[int, tuple[SlotRequest, str, Slot | None, int]] = {}
        #: host and unit of each that ever had one
        self.hosts: dict[int, str] = {}
        self._units: dict[int, str] = {}
        #: of those that lived when slots were settled last; None: they are to be settled
        self._mark: object = None

    def place(self, incarnation: int, request: SlotRequest) -> str:
        """Return a host for a new sub-unit, with a slot while there are any. Raises UsageError when no host will do."""
        host, slot = self._resources.allocate(request)
        self._mark = None
        self._requests[incarnation] = (request, host, slot, self._resources.life(host))
        self.hosts[incarnation] = host
        self._units[incarnation] = request.unit
        self.most_held = max(self.most_held, self._held)
        return host

    def of(self, unit: str) -> dict[int, str]:
        """Return the hosts of all sub-units that this unit ever had."""
        return {incarnation: self.hosts[incarnation] for incarnation, name in self._units.items() if name == unit}

    @property
    def crowded(self) -> list[int]:
        """Sub-units without a slot."""
        return [incarnation for incarnation, (_, _, slot, _) in self._requests.items() if slot is None]

    def free(self) -> int:
        """Return how many slots are free, or would be if they were asked for, and within the budget."""
        return self._within(self._resources.free + self._resources.obtainable)

    @property
    def obtainable(self) -> int:
        """Return how many of `free` other runs would have to give first."""
        return self.free() - self._within(self._resources.free)

    def _within(self, free: int) -> int:
        most = self.budget.sub_units
        return max(0, min(free, most - self._held)) if most else free

    @property
    def total(self) -> int:
        """Return the slots that the run could hold now, within the budget."""
        return min(self._resources.total + self.obtainable, self.allowed or sys.maxsize)

    @property
    def offered(self) -> tuple[Callable[[], int], int | None, int]:
        """Return what policies are told: what is free, what the budget allows, and what other runs would have to give."""
        return self.free, self.allowed, self.obtainable

    def ask(self, slots: int, until: float) -> None:
        """Want so many more slots than are free until then."""
        self._asked, self._asked_until = slots, until

    def lacking(self, now: float) -> int:
        """Return how many slots are wanted by hand, or by sub-units that have none."""
        return len(self.crowded) + (self._asked if now < self._asked_until else 0)

    @property
    def allowed(self) -> int | None:
        """Return how many slots the budget allows, of those that there are; None without one."""
        if self.budget.sub_units:
            return self.budget.sub_units
        return self._resources.total if self.budget.hourly else None

    @property
    def _held(self) -> int:
        return sum(bool(request.unit) for request, *_ in self._requests.values())

    def settle(self, living: Callable[[], Collection[int]], mark: object) -> None:
        """Take back the slots of those that are gone, and give slots to those without one.

        It is called at each message: `mark` is another one whenever others live, and for the same one nothing is asked.
        """
        if mark == self._mark:
            return
        alive = living()
        for incarnation in [each for each in self._requests if each not in alive]:
            request, host, slot, life = self._requests.pop(incarnation)
            if self._resources.life(host) == life:  # else it went with the host, whose slots are others' by now
                self._resources.leave(request, host, slot)
        for incarnation, (request, host, slot, life) in list(self._requests.items()):
            if slot is None and self._resources.life(host) == life:
                self._requests[incarnation] = (request, host, self._resources.slot_on(host), life)
        self._mark = None if self.crowded else mark  # a slot may come with a host
