"""A process in a simulation: a core of the engine, woken when something comes or is due."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from bench.simulation.events import EPOCH
from bench.simulation.outside import Broken, Paced
from esault.flow.worker.spout_unit import SpoutSubUnit
from esault.flow.worker.sub_unit import SubUnit
from esault.messages.control import Build, DumpThreads, ThreadDump
from esault.testing.local_process import LocalAcker, LocalSubUnit

if TYPE_CHECKING:
    from bench.simulation.machine import Machine

__all__ = ["Process"]

#: seconds of one slice of a process's life
SLICE = (0.00005, 0.0008)
#: seconds after which one that waits for what tells it nothing looks again
LOOK_AGAIN = 0.02
#: seconds that one with nothing to do rests at least, and slices one after the other in which it may find nothing and not rest
SHORTEST, MOST_IN_VAIN = 1e-6, 1000


class Process:
    """Drives one `LocalSubUnit` or `LocalAcker`."""

    def __init__(self, machine: Machine, incarnation: int, unit: str, order: random.Random) -> None:
        self.machine, self.incarnation, self.unit = machine, incarnation, unit
        self._events, self._order = machine.life.events, order
        self.frozen = self.gone = False
        #: so many times as long as others for a slice
        self.slowness = 1.0
        self._in_vain = 0
        self._wakes_at = float("inf")
        self._name = f"run {unit}/{incarnation}"
        self.local: LocalSubUnit | LocalAcker | None = None

    def begin(self, local: LocalSubUnit | LocalAcker) -> None:
        """Live."""
        self.local = local
        self.wake()

    @property
    def spout(self) -> Any:
        """That of a spout's process."""
        core = getattr(self.local, "core", None)
        return core.spout if isinstance(core, SpoutSubUnit) else None

    def take(self, message: Any) -> None:
        """A control message comes."""
        if self.gone or self.local is None or isinstance(message, Build):
            return
        if isinstance(message, DumpThreads):  # the actor's thread answers
            if not self.frozen and not self.machine.frozen:
                self.machine.say(ThreadDump(self.incarnation, "", ""))
            return
        self.local.messages.append(message)
        self.wake()

    def wake(self, at: float | None = None) -> None:
        """Have a slice of its life happen then, or at once."""
        when = self._events.now if at is None else at
        if when < self._wakes_at:
            self._wakes_at = when
            self._events.at(when, self._name, self._slice, when)

    def _slice(self, due: float) -> None:
        if due != self._wakes_at:
            return  # it was woken earlier
        self._wakes_at = float("inf")
        machine, local = self.machine, self.local
        if self.gone or self.frozen or machine.frozen or local is None:
            return  # woken when it goes on
        if not machine.holds():
            return  # others may own by now what it owned; woken when the driver is heard
        happened = local.run(self._order)
        inlets: tuple[Any, Any] = (local.data, local.fast)  # of `network`
        for inlet in inlets:
            inlet.read()
        while local.outbox:
            machine.say(local.outbox.popleft())
        if local.gone:
            self.gone = True
            machine.left(self)
        elif happened:
            self._in_vain = 0
            self.wake(self._events.now + self._order.uniform(*SLICE) * self.slowness)
        else:
            self._rest(self._next_at())

    def _rest(self, until: float) -> None:
        """Wait until something comes or is due. Raises Broken for one that never rests: it would take a processor for nothing."""
        now = self._events.now
        self._in_vain = 0 if until > now + SHORTEST else self._in_vain + 1
        if self._in_vain > MOST_IN_VAIN:
            raise Broken(f"{self.unit}/{self.incarnation} has nothing to do, and never rests")
        self.wake(max(until, now + SHORTEST))

    def _next_at(self) -> float:
        local = self.local
        assert local is not None
        away = EPOCH + self.machine.life.offset(self.machine.name)
        if not isinstance(local, LocalSubUnit):
            # Ack servers look twenty times a second, which brings nothing while nothing comes.
            return self._events.now + (0.05 if local.core._marks or not local.core.retry() else 1.0)
        core = local.core
        if not core.lifecycle.phase.alive:
            return float("inf")
        at = core.next_at
        if isinstance(core, SpoutSubUnit) and isinstance(core.spout, Paced) and at == core.pace.at:
            # It would ask its source two hundred times a second, which has nothing before its time.
            at = max(at, min(SubUnit.wake_at(core), core.spout.next_at() + away))
        at -= away
        outputs = core.outputs
        if outputs.open_hooks or (core.calls is not None and core.calls.open) or local.messages:
            at = min(at, self._events.now + LOOK_AGAIN)
        return at

    def freeze(self) -> None:
        """Stand still, as by SIGSTOP."""
        self.frozen = True

    def thaw(self) -> None:
        """Go on."""
        self.frozen = False
        self.wake()

    def die(self) -> None:
        """Be gone at once: what it had in memory and what it had not read goes with it."""
        if not self.gone:
            self.gone = True
            if self.local is not None:
                self.local.leave()
