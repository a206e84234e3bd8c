"""What sits where in a local run: a core, its inlets and its mail."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from esault.flow.bolt_unit import BoltSubUnit
from esault.flow.checkpoint.snapshot import Vault
from esault.flow.delivery.ack_server import AckServer
from esault.flow.prober import Prober
from esault.flow.spout_unit import SpoutSubUnit
from esault.flow.sub_unit import SubUnit
from esault.flow.user_error import LetterBox
from esault.messages.control import Build, Built, Seats, Stop
from esault.messages.probe import ProbeReading
from esault.testing.memory_wire import MemoryWire
from esault.topology.plan import UnitPlan

__all__ = ["AckerSeat", "ProberSeat", "SubUnitSeat"]


class _Seat:
    def __init__(self, incarnation: int, wire: MemoryWire) -> None:
        self.incarnation = incarnation
        self._wire = wire
        self.endpoint = f"memory://{incarnation}/data"
        self.express = f"memory://{incarnation}/express"
        self.data = wire.bind(self.endpoint)
        self.fast = wire.bind(self.express)
        #: control messages that have not been read
        self.mail: deque[Any] = deque()
        #: messages for the driver
        self.outbox: deque[Any] = deque()
        self.paused = False
        self.gone = False
        self.outbox.append(Built(incarnation, 0, self.endpoint, self.express))

    def leave(self) -> None:
        """The process is gone."""
        self.gone = True
        self._wire.unbind(self.endpoint)
        self._wire.unbind(self.express)


class SubUnitSeat(_Seat):
    """A sub-unit."""

    def __init__(
        self,
        build: Build,
        plan: UnitPlan,
        wire: MemoryWire,
        clock: Callable[[], float],
        letters: Callable[[str | None], LetterBox],
        seed: int,
        run_dir: str | None = None,
        vault: Vault | None = None,
    ) -> None:
        super().__init__(build.incarnation, wire)
        self.core: SubUnit
        if plan.kind == "spout":
            self.core = SpoutSubUnit(build, plan, wire, clock, letters, seed, run_dir, vault)
        else:
            self.core = BoltSubUnit(build, plan, wire, clock, letters, seed, run_dir, vault)

    def run(self, order: random.Random) -> bool:
        """A slice of this process's life; whether anything happened. Frames and mail are taken bit by bit."""
        core = self.core
        happened = False
        if self.mail and (core.stopped or order.random() < 0.8):
            core.handle(self.mail.popleft())
            happened = True
        links = self.fast.waiting()
        if core.may_read:
            links += self.data.waiting()
        order.shuffle(links)
        for link in links[: order.randint(1, 4)]:
            core.read(link.popleft())
            happened = True
        for _ in range(order.randint(1, 3)):
            happened = core.turn() or happened
        while core.outbox:
            self.outbox.append(core.outbox.popleft())
            happened = True
        if core.stopped and not self.mail:
            self.leave()
        return happened

    def wake_at(self) -> float:
        """When something happens by itself."""
        return self.core.wake_at()


class AckerSeat(_Seat):
    """An ack server."""

    def __init__(self, build: Build, wire: MemoryWire, clock: Callable[[], float]) -> None:
        super().__init__(build.incarnation, wire)
        self.core = AckServer(build.incarnation, build.epoch, build.settings, wire)
        self._clock = clock
        self._watch_at = clock()

    def run(self, order: random.Random) -> bool:
        """A slice of this process's life; whether anything happened."""
        happened = False
        now = self._clock()
        if self.mail:
            message = self.mail.popleft()
            happened = True
            if isinstance(message, Seats):
                self.core.owners(message.owners)
            elif isinstance(message, Stop):
                self.leave()
                return True
        links = self.fast.waiting()
        order.shuffle(links)
        for link in links[: order.randint(1, 4)]:
            self.core.read(link.popleft(), now)
            happened = True
        self.core.send()
        self.core.push()
        if now >= self._watch_at:
            self._watch_at = now + 0.05
            self.core.watch(now)
        return happened

    def wake_at(self) -> float:
        """When something happens by itself."""
        return self._watch_at


class ProberSeat:
    """The prober."""

    def __init__(self, wire: MemoryWire, endpoint: str, epoch: int) -> None:
        self._answers = wire.bind(endpoint)
        self._core = Prober(wire, epoch)

    def run(self, targets: Mapping[int, tuple[str, float]], epoch: int, now: float) -> list[ProbeReading]:
        """Take answers, send what is due."""
        readings = []
        for link in self._answers.waiting():
            while link:
                reading = self._core.read(link.popleft(), now)
                if reading is not None:
                    readings.append(reading)
        self._core.targets(targets, epoch)
        return readings + self._core.send(now)
