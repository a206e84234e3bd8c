"""A machine: its keeper, its processes, its clock, and whether the driver was heard there of late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.simulation.network import Channel
from bench.simulation.process import Process
from esault.messages.control import Exited, Fork, Kill, NotForked, Release
from esault.runtime.process.lease import LEASE
from esault.runtime.remote.host_connection import SILENCE
from esault.runtime.worker.fork_retries import ForkRetries, shortage

if TYPE_CHECKING:
    from bench.simulation.life import Life

__all__ = ["Machine"]

#: seconds that a fork takes, and one in fifty
FORK, SLOW_FORK = (0.005, 0.06), (0.5, 6.0)
#: seconds between two looks of the keeper
LOOK_EVERY = 0.25


class Machine:
    """One life of a host in a run: what is lost is another one when it comes back. Without a cluster there is one machine."""

    def __init__(self, life: Life, name: str, alone: bool) -> None:
        self.life, self.name, self.alone = life, name, alone
        self.processes: dict[int, Process] = {}
        network, where = life.network, life.at
        self.down = Channel(network, where, name, f"to {name}")
        self.up = Channel(network, name, where, f"from {name}")
        #: it is part of the run: nothing is heard of one that is not
        self.part = True
        #: its processes were ended
        self.over = False
        self.frozen = False
        #: since when nothing is heard of the driver here
        self.silent_since: float | None = None
        #: until when no process can be made
        self.full_until = 0.0
        self.slow_forks = False
        self._retries = ForkRetries()
        self._looking = False
        #: forks that are under way, and those of them that are to be ended at once
        self._coming: set[int] = set()
        self._condemned: set[int] = set()

    # the driver's word ---------------------------------------------------------------------------------

    def holds(self) -> bool:
        """Return whether the driver was heard of late: else nothing is done here."""
        if self.alone or self.silent_since is None:
            return True
        return self.life.events.now - self.silent_since < LEASE

    def silence(self) -> None:
        """Nothing is heard of the driver from now on."""
        if self.silent_since is None and not self.alone:
            events = self.life.events
            # It said something in the last third of a second.
            self.silent_since = events.now - self.life.order.uniform(0.0, 0.3)
            events.at(self.silent_since + SILENCE + 0.01, f"silence {self.name}", self._look_for_word)

    def _look_for_word(self) -> None:
        if self.silent_since is not None and not self.over and not self.frozen:
            if self.life.events.now - self.silent_since > SILENCE:
                self.end(f"no word from the driver for {SILENCE} s")
            else:
                self.life.events.at(self.silent_since + SILENCE + 0.01, f"silence {self.name}", self._look_for_word)

    def heard(self) -> None:
        """The driver is heard again."""
        since = self.silent_since
        if since is None or self.over:
            return
        if self.life.events.now - since > SILENCE:
            self.end("the driver was not heard for too long")
            return
        self.silent_since = None
        for process in list(self.processes.values()):
            process.wake()

    def end(self, why: str) -> None:
        """All processes here are ended: they are of a run that goes on without them, if at all."""
        if self.over:
            return
        self.over = True
        self.life.tell(f"{self.name}: all processes end ({why})")
        self.up.put(self.life.host_left, self)
        for process in list(self.processes.values()):
            process.die()
        self.processes.clear()

    def freeze(self) -> None:
        """The whole machine stands still."""
        self.frozen = True
        if not self.alone and self.silent_since is None:
            self.silent_since = self.life.events.now

    def thaw(self) -> None:
        """It goes on."""
        self.frozen = False
        life = self.life
        if self.alone or self.silent_since is None:
            self.silent_since = None
        elif life.speaks_to(self):
            self.heard()
        else:
            life.events.after(0.05, f"silence {self.name}", self._look_for_word)
        for process in list(self.processes.values()):
            process.wake()

    # the keeper ----------------------------------------------------------------------------------------

    def keep(self, message: Any) -> None:
        """Take what is meant for the keeper here."""
        if self.over:
            return
        if self.frozen:  # it waits in the socket
            self.life.events.after(0.05, f"keeper {self.name}", self.keep, message)
        elif isinstance(message, Fork):
            self._fork(message)
        elif isinstance(message, Kill):
            self._kill(message.incarnation)
        elif isinstance(message, Release):
            process = self.processes.get(message.incarnation)
            if process is not None:
                self._gone(message.incarnation, "")

    def _fork(self, message: Fork) -> None:
        life, incarnation = self.life, message.build.incarnation
        if message.reused:
            old = self.processes.pop(message.reused, None)
            if old is None or old.spout is None:
                self.say(Exited(incarnation, "its process is gone"))
                return
            spout = old.spout
            old.die()
            self._born(message, spout)
            return
        if life.events.now < self.full_until:
            tries, again = self._retries.failed(message, life.events.now)
            life.counts["forks that failed"] += 1
            self.say(NotForked(incarnation, shortage(OSError(11, "Resource temporarily unavailable")), tries, again))
            self._look()
            return
        self._retries.forked(incarnation)
        self._coming.add(incarnation)
        slow = self.slow_forks or life.order.random() < 0.02
        life.events.after(
            life.order.uniform(*(SLOW_FORK if slow else FORK)), f"fork {incarnation}", self._born, message
        )

    def _born(self, message: Fork, spout: Any = None) -> None:
        incarnation = message.build.incarnation
        self._coming.discard(incarnation)
        self._retries.forget(incarnation)
        if self.over:
            return
        if incarnation in self._condemned:
            self._condemned.discard(incarnation)
            self.say(Exited(incarnation, "the run ended it"))
            return
        process = self.life.make(self, message.build, spout)
        if process is not None:
            self.processes[incarnation] = process

    def _look(self) -> None:
        """Try again, as the keeper does when it looks who lives."""
        if not self._looking:
            self._looking = True
            self.life.events.after(LOOK_EVERY, f"look {self.name}", self._looked)

    def _looked(self) -> None:
        self._looking = False
        if self.over:
            return
        for fork in self._retries.due(self.life.events.now):
            self._fork(fork)
        if self._retries._failed:
            self._look()

    def _kill(self, incarnation: int) -> None:
        if incarnation in self.processes:
            self._gone(incarnation, "the run ended it")
        elif incarnation in self._coming:
            self._condemned.add(incarnation)
        else:
            self._retries.forget(incarnation)

    def _gone(self, incarnation: int, why: str) -> None:
        process = self.processes.pop(incarnation)
        process.die()
        self.say(Exited(incarnation, why))

    def kill(self, incarnation: int, why: str) -> None:
        """Kill a process here."""
        self._gone(incarnation, why)

    def left(self, process: Process) -> None:
        """A process has said its last word, and goes."""
        if self.processes.get(process.incarnation) is process:
            del self.processes[process.incarnation]
            self.say(Exited(process.incarnation, ""))

    def say(self, message: Any) -> None:
        """To the driver."""
        if not self.over:
            self.life.from_machine(self, message)
