"""Chained bolts that get processes of their own while tuples flow, and what they begin with after all have gone back.

The new unit is built beside the run, registers where it sends to, and starts; only then those that it was chained to get its table.
Each of them passes rows on by that table from one row on, and had processed all before it itself: none is lost or comes twice. What
comes behind the bolt does not end meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from esault.control.units.change_requests import BY_HAND
from esault.control.units.measurements import Measurements
from esault.control.units.signals import MayEnd
from esault.control.units.sub_unit_record import SubUnitRecord
from esault.control.units.unit import Unit
from esault.elasticity.chain_breaker import ChainBreaker, ChainedLoad, ChainLoad
from esault.errors import UsageError
from esault.messages.change_record import ChangeRecord
from esault.messages.checkpoint import CompletedCheckpoint
from esault.messages.control import Kill
from esault.messages.delivery import Delivery
from esault.routing.table import OutputTable
from esault.topology.chaining import unchain
from esault.topology.plan import Plan

if TYPE_CHECKING:
    from esault.control.run.driver import Driver

__all__ = ["UNCHAIN", "Unchaining"]

#: the kind of change
UNCHAIN = "unchain"
#: the author of a change that was not asked for
CHAINING = "chaining"
#: seconds between two looks
LOOK_EVERY = 0.25
#: share of a host's processors from which there is none to spare
HOST_FULL = 0.9


@dataclass
class _Change:
    id: int
    at: float
    reason: str
    policy: str
    #: the plan in which it is chained
    before: Plan
    #: when its senders were told of it; None: they have not been
    connected: float | None = None


def chain_load(unit: Unit, plan: Plan, now: float) -> ChainLoad:
    """Return what a unit with chained bolts has done so far."""
    living = [last for i in unit.subs if (last := unit.measurements.last(i)) is not None]
    bolts = [bolt for bolt in unit.plan.bolts if plan.chained.get(bolt.name) == unit.name]
    counted = {bolt.name: unit.measurements.chained.get(bolt.name) or Measurements() for bolt in bolts}
    return ChainLoad(
        max((last.now for last in living), default=now),
        max(1, len(living)),
        unit.measurements.counts.busy_seconds,
        # One that waits for a processor has work for it: other work on the machine is no reason to start processes.
        None
        if any(last.usage is None for last in living)
        else sum(last.usage.cpu + (last.usage.cpu_wait or 0.0) for last in living if last.usage),
        tuple(
            ChainedLoad(
                bolt.name,
                counted[bolt.name].counts.busy_seconds,
                counted[bolt.name].counts.tuples_in,
                frozenset([bolt.name, *(each.name for each in bolt.bolts if each.name in counted)]),
            )
            for bolt in bolts
        ),
    )


class Unchaining:
    """The change that gives a chained bolt sub-units of its own; one at a time."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._on: dict[str, _Change] = {}
        self._breakers: dict[str, ChainBreaker] = {}
        self._look_at = 0.0
        #: by change, why it was given up: its unit is chained as before
        self.dropped: dict[int, str] = {}

    def begin(self, name: str, n: int, now: float, reason: str = "", policy: str = BY_HAND) -> int:
        """Give a chained bolt n sub-units of its own; return the change's id. Raises UsageError, and nothing is changed then."""
        driver, before = self._driver, self._driver.plan
        if n < 1:
            raise UsageError(f"unit {name!r} cannot have {n} sub-units: it needs one at least")
        for other in self._on:
            raise UsageError(f"unit {name!r} is chained, and {other!r} is being given processes: try again in a moment")
        for sender in self._around(name):
            if sender.changing or not sender.steady:
                raise UsageError(
                    f"unit {name!r} is chained to {sender.name!r}, which is starting, ending or being changed: try again in a moment"
                )
        unit = self._take_apart(name, n)
        unit.state.joining = True
        for target in unit.state.targets:
            driver.units[target].senders.expect(name, n)
        change = _Change(unit.new_id(), now, reason, policy, before)
        self._on[name] = change
        unit.start(now)
        return change.id

    def _take_apart(self, name: str, n: int) -> Unit:
        """Make the unit of a chained bolt."""
        driver, before = self._driver, self._driver.plan
        head = driver.units[before.chained[name]]
        plan = driver.plan = unchain(before, name)
        unit = Unit(plan, plan.units[name], n, head.state.new_build, head.new_id)
        unit.be_exact(driver.settings.delivery is Delivery.EXACTLY_ONCE)
        unit.state.checkpoints = driver.checkpoints
        unit.state.draining = head.state.draining
        driver.units = {each: driver.units.get(each, unit) for each in plan.units}
        if driver.scaling.halves(plan.units[name]):
            unit.lives.first_table = OutputTable.halved
        return unit

    def _around(self, name: str) -> Iterator[Unit]:
        """Yield the units in whose processes a bolt can run."""
        for unit in self._driver.units.values():
            if any(bolt.name == name for bolt in unit.plan.bolts):
                yield unit

    def step(self, now: float) -> bool:
        """Take what is on as far as it can go, or look whether something is to begin; return whether anything happened."""
        if not self._on and self._driver.plan.chained and now >= self._look_at:
            self._look_at = now + LOOK_EVERY
            return self._look(now)
        return any(self._step(name, change, now) for name, change in list(self._on.items()))

    def _look(self, now: float) -> bool:
        """Give a bolt processes of its own where the chain is full and that brings more."""
        driver = self._driver
        if driver.draining or driver.busy:
            return False
        spare = sum(host.cores * max(0.0, HOST_FULL - host.cpu) for host in driver.hosts)
        for head in dict.fromkeys(driver.plan.chained.values()):
            load = chain_load(driver.units[head], driver.plan, now)
            found = self._breakers.setdefault(head, ChainBreaker()).look(load, spare)
            if (
                found is None
                or driver.places.free() < 1
                or driver.scaling.policy_of(driver.plan.unit(found[0])) is None
            ):
                continue
            try:
                self.begin(found[0], 1, now, found[1], CHAINING)
            except UsageError:
                continue  # it is looked at again in a moment
            return True
        return False

    def _step(self, name: str, change: _Change, now: float) -> bool:
        unit = self._driver.units[name]
        if unit.table is None:
            return False
        if not unit.state.wiring:
            unit.register()
        elif not unit.state.going:
            if not unit.wired:
                return False
            unit.go(now)
            unit.state.event("reachable")
        elif change.connected is None:
            if any(sender.changing for sender in self._around(name)):
                return False
            change.connected = now
            for sender in self._around(name):
                sender.targets.add(name)
        elif unit.unsettled or any(name in r.missing or name in r.switching for r in self._senders(name)):
            return False
        else:
            self._end(name, change, now)
            unit.state.say(MayEnd(), now)
        return True

    def _senders(self, name: str) -> list[SubUnitRecord]:
        return [record for sender in self._around(name) for record in sender.subs.values()]

    def _end(self, name: str, change: _Change, now: float) -> None:
        driver, unit = self._driver, self._driver.units[name]
        del self._on[name]
        unit.state.joining = False
        driver.scaling.add(driver.plan, name)
        prepared = (change.connected or now) - change.at
        took = now - change.at
        unit.changes.append(
            ChangeRecord(
                at=change.at,
                unit=name,
                kind=UNCHAIN,
                before=0,
                after=unit.width,
                reason=change.reason,
                policy=change.policy,
                moved_keys=0,
                moved_bytes=0,
                held=0.0,
                seconds=took,
                prepared=prepared,
                id=change.id,
            )
        )
        why = f": {change.reason}" if change.reason else ""
        driver.notices.append(
            f"{name} runs in processes of its own, and no longer in those of {change.before.chained[name]}{why}"
        )

    def drop(self, name: str, why: str, now: float) -> bool:
        """Chain it as before, since a process cannot be made; return whether that can be: until it registers no other unit knows of it."""
        change, unit = self._on.get(name), self._driver.units[name]
        if change is None or unit.state.wiring:
            return False
        driver = self._driver
        del self._on[name]
        for incarnation in unit.subs:
            driver.outbox.append(("keeper", Kill(incarnation)))
            del driver.unit_of[incarnation]  # its end is no news to the run
        for target in unit.state.targets:
            receiver = driver.units[target]
            receiver.senders.expect(name, 0)
            receiver.state.say(MayEnd(), now)
        driver.plan = change.before
        driver.units = {each: driver.units[each] for each in driver.plan.units}
        self.dropped[change.id] = why
        driver.notices.append(f"{name} stays chained to {change.before.chained[name]}: {why}")
        return True

    def go_back(self, completed: CompletedCheckpoint | None, now: float) -> None:
        """All are built anew: those that are on are done with that, and what has rows in the checkpoint gets its processes back."""
        driver = self._driver
        for name, change in list(self._on.items()):
            if change.connected is None:
                for sender in self._around(name):
                    sender.state.targets = (*sender.state.targets, name)
            self._end(name, change, now)
        for name, unit in completed.units.items() if completed is not None else ():
            if name in driver.plan.chained and unit.holds_rows:
                self._take_apart(name, unit.parallelism)
                driver.scaling.add(driver.plan, name)
                for sender in self._around(name):
                    sender.state.targets = (*sender.state.targets, name)
