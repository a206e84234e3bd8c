"""Hosts that run short of memory: a sub-unit is moved, split or put on disk while there is time, or the run ends with the numbers.

The kernel kills without a word, and in an order of its own. So it is looked at before how much is left and how fast that
becomes less. Where another host has room, the sub-unit that takes most goes there; what fits nowhere is split, and one half goes there.
Where neither can be, the one that takes most keeps half of its keys on disk. Where that is no help either, the run fails, and one with checkpoints may be resumed with more memory or hosts; what other programs take is
told of alone.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from esault.control.run.driver import Driver
from esault.control.units.unit import Unit
from esault.errors import UsageError
from esault.messages.control import Spill
from esault.messages.probe import HostUsage
from esault.topology.states_on_disk import why_not_on_disk

__all__ = ["MemoryWatch"]

#: seconds between two looks, and over which growth is taken
EVERY, OVER = 0.5, 5.0
#: share of a host's memory from which it is short; or less, where it would be full within so many seconds
SHORT, LEAST, SOON = 0.8, 0.5, 20.0
#: share of its memory from which a run that nothing else helps ends
FULL = 0.95
#: share of what is in use on the host that is this run's own, from which ending it would help
OWN = 0.5
#: ... and from which moving a part of it would
WORTH = 0.2
#: share of its memory that a host has left after it was moved to, at least
SPARE = 0.3
#: seconds in which a change shows in what is in use
SETTLE = 3.0
#: keys in memory below which a sub-unit's memory is not taken by them
FEWEST = 256
MEGABYTE = 1e6


@dataclass
class _Host:
    """One host of late."""

    #: (when, bytes in use)
    used: deque[tuple[float, int]] = field(default_factory=deque)
    told: bool = False
    acted_at: float = float("-inf")

    def note(self, now: float, used: int) -> None:
        self.used.append((now, used))
        while self.used[0][0] < now - OVER:
            self.used.popleft()

    @property
    def growth(self) -> float:
        """Bytes a second, 0 or more."""
        (began, before), (end, after) = self.used[0], self.used[-1]
        return max(0.0, (after - before) / (end - began)) if end - began >= OVER / 2 else 0.0


class MemoryWatch:
    """Call `step` a few times a second."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}
        self._next_at = 0.0
        #: sub-units that have keys on disk
        self._spilled: set[int] = set()

    def step(self, driver: Driver, now: float) -> None:
        """Look at all hosts, and begin what can begin now."""
        if now < self._next_at or driver.phase != "running" or driver.draining:
            return
        self._next_at = now + EVERY
        short = []
        for usage in driver.hosts:
            host = self._hosts.setdefault(usage.name, _Host())
            host.note(now, usage.memory)
            if usage.memory_total > 0 and self._is_short(usage, host):
                short.append(usage)
            elif usage.memory < LEAST * usage.memory_total:
                host.told = False  # around the limit it is told once
        driver.resources.short = frozenset(usage.name for usage in short)
        for usage in short:
            self._relieve(driver, usage, self._hosts[usage.name], now)

    @staticmethod
    def _is_short(usage: HostUsage, host: _Host) -> bool:
        share = usage.memory / usage.memory_total
        left = usage.memory_total - usage.memory
        return share >= SHORT or (share >= LEAST and left < SOON * host.growth)

    def _relieve(self, driver: Driver, usage: HostUsage, host: _Host, now: float) -> None:
        here = sorted(
            ((driver.scaling.sampler.memory(i), i, unit) for unit in driver.units.values() for i in unit.subs
             if driver.places.hosts.get(i, usage.name) == usage.name),
            key=lambda each: -each[0],
        )  # fmt: skip
        if not here:
            return
        most, incarnation, unit = here[0]
        growth = f", and grows by {_bytes(host.growth)}/s" if host.growth >= MEGABYTE else ""
        text = (
            f"host {usage.name}: {_bytes(usage.memory)} of {_bytes(usage.memory_total)} of memory are in use{growth}; "
            f"most has {unit.name}/{incarnation}, {_bytes(most)}"
        )
        if not host.told:
            host.told = True
            driver.notices.append(text)
        own = sum(memory for memory, _, _ in here)
        if own < WORTH * usage.memory:  # others fill it: this run would go and nothing be better
            return
        if now < host.acted_at + SETTLE or driver.busy or any(each.changing for each in driver.units.values()):
            pass
        elif (
            self._move(driver, usage.name, here, now)
            or self._split(driver, usage.name, here, now)
            or (usage.memory >= SHORT * usage.memory_total and self._spill(driver, usage.name, here, now))
        ):
            host.acted_at = now
            return
        if usage.memory >= FULL * usage.memory_total and own >= OWN * usage.memory and now >= host.acted_at + SETTLE:
            if self._spill(driver, usage.name, here, now):  # it was not tried while a change is on, which may take long
                host.acted_at = now
            else:
                self._end(driver, text, now)

    @staticmethod
    def _move(driver: Driver, host: str, here: list[tuple[int, int, Unit]], now: float) -> bool:
        """Move the largest that another host has room for."""
        rooms = {
            usage.name: (1.0 - SPARE) * usage.memory_total - usage.memory
            for usage in driver.hosts
            if usage.name != host and usage.name not in driver.resources.short
        }
        for memory, incarnation, unit in here:
            for other in sorted((name for name, room in rooms.items() if memory < room), key=lambda name: -rooms[name]):
                try:
                    driver.commands.elastic(unit.name, 1)
                    reason = f"host {host} runs short of memory, and this has {_bytes(memory)}"
                    unit.move(incarnation, now, reason, "memory", other)
                except UsageError:
                    continue
                driver.deliver(now)
                return True
        return False

    @staticmethod
    def _split(driver: Driver, host: str, here: list[tuple[int, int, Unit]], now: float) -> bool:
        """Give half of the largest whose keys can be parted to a new sub-unit on another host."""
        if not any(usage.name not in driver.resources.short for usage in driver.hosts):
            return False
        for memory, incarnation, unit in here:
            if not unit.plan.keyed:
                continue
            try:
                unit.check_change(unit.width + 1)
                driver.commands.elastic(unit.name, unit.plan.replicas)
                reason = f"host {host} runs short of memory, and this has {_bytes(memory)}"
                unit.split(incarnation, now, None, reason, "memory")
            except UsageError:
                continue
            driver.deliver(now)
            return True
        return False

    def _spill(self, driver: Driver, host: str, here: list[tuple[int, int, Unit]], now: float) -> bool:
        """Have the largest whose keys can be on a disk put half of them there, or half of what is left."""
        for memory, incarnation, unit in here:
            last = unit.measurements.last(incarnation)
            if why_not_on_disk(unit.plan) is not None or last is None:
                continue
            if last.rows.elements - last.rows.keys_on_disk < FEWEST:
                continue
            unit.state.tell(incarnation, Spill())
            if incarnation not in self._spilled:
                self._spilled.add(incarnation)
                driver.notices.append(
                    f"host {host} runs short of memory: {unit.name}/{incarnation}, which has {_bytes(memory)}, has the states of "
                    "keys on disk from now on"
                )
            driver.deliver(now)
            return True
        return False

    @staticmethod
    def _end(driver: Driver, text: str, now: float) -> None:
        # Not in order: a last checkpoint would take more memory than there is.
        further = (
            f"; --resume goes on from checkpoint {driver.completed.number}" if driver.completed is not None else ""
        )
        remedy = f"give it more memory or more hosts, or keep less{further}"
        driver.fail(f"{text}: the run ends before the system kills it; {remedy}", now)


def _bytes(many: float) -> str:
    return f"{many / 1e9:.1f} GB" if many >= 1e9 else f"{many / MEGABYTE:.0f} MB"
