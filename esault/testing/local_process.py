"""A process of a local run: a core, its inlets and its messages."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from esault.flow.delivery.ack_server import AckServer
from esault.flow.sub_unit_factory import sub_unit
from esault.flow.worker.environment import Environment
from esault.flow.worker.prober import Prober
from esault.flow.worker.sub_unit import SubUnit
from esault.messages.control import AckRouting, Build, Built, Stop
from esault.messages.probe import ProbeReading
from esault.testing.memory_wire import MemoryWire
from esault.topology.plan import UnitPlan

__all__ = ["LocalAcker", "LocalProber", "LocalSubUnit"]


def _below(bits: Callable[[int], int], n: int) -> int:
    """Return a whole number below `n`, which is 3 or 4, as `Random.randrange` draws it: these are drawn at each step of each process."""
    drawn = bits(n.bit_length())
    while drawn >= n:
        drawn = bits(n.bit_length())
    return drawn


class _LocalProcess:
    def __init__(self, incarnation: int, wire: MemoryWire) -> None:
        self.incarnation = incarnation
        self._wire = wire
        self.endpoint = f"memory://{incarnation}/data"
        self.express = f"memory://{incarnation}/express"
        self.data = wire.bind(self.endpoint)
        self.fast = wire.bind(self.express)
        #: control messages that have not been read
        self.messages: deque[Any] = deque()
        #: messages for the driver
        self.outbox: deque[Any] = deque()
        self.frozen = False
        self.gone = False
        self.outbox.append(Built(incarnation, 0, self.endpoint, self.express))

    def leave(self) -> None:
        """The process is gone."""
        self.gone = True
        self._wire.unbind(self.endpoint)
        self._wire.unbind(self.express)


class LocalSubUnit(_LocalProcess):
    """A sub-unit."""

    def __init__(
        self,
        build: Build,
        plan: UnitPlan,
        wire: MemoryWire,
        environment: Environment,
    ) -> None:
        super().__init__(build.incarnation, wire)
        self.core: SubUnit = sub_unit(build, plan, environment)
        self.outbox.extendleft(
            reversed(self.core.outbox)
        )  # what is to be said of the state comes before the run begins
        self.core.outbox.clear()
        self._clock = environment.clock
        #: until when nothing happens unless something comes; most processes wait most of the time
        self._rests_until = 0.0

    def run(self, order: random.Random) -> bool:
        """A slice of this process's life; whether anything happened. Frames and messages are taken bit by bit."""
        core = self.core
        happened = False
        nothing = not (self.messages or core.outbox or self.fast.waiting() or self.data.waiting())
        if nothing and self._rests_until and self._clock() < self._rests_until:
            # A seed's run is the same whether or not this one is left alone.
            _below(order.getrandbits, 4)
            _below(order.getrandbits, 3)
            return False
        if self.messages and (core.stopped or order.random() < 0.8):
            core.handle(self.messages.popleft())
            happened = True
        links = self.fast.waiting()
        if core.may_read:
            links += self.data.waiting()
        order.shuffle(links)
        for link in links[: 1 + _below(order.getrandbits, 4)]:
            core.read(link.popleft())
            happened = True
            while link and core.reader.unaligned:  # all that there is, between two tuples that may take long
                core.read(link.popleft())
        worked = False
        for _ in range(1 + _below(order.getrandbits, 3)):
            worked = core.turn()
            if not worked:  # the next would find the same
                break
            happened = True
        while core.outbox:
            self.outbox.append(core.outbox.popleft())
            happened = True
        if core.stopped and not self.messages:
            self.leave()
        # What is blocked goes on when another has read, and a call when its answer comes, of which nothing tells this process.
        outputs = core.outputs
        unseen = outputs.blocked or outputs.open_hooks or (core.calls is not None and core.calls.open)
        self._rests_until = 0.0 if worked or self.messages or unseen else core.next_at
        return happened

    def wake_at(self) -> float:
        """Return the time at which something happens by itself: as found where it has rested since, which changes nothing."""
        return self._rests_until or self.core.next_at

    def leave(self) -> None:
        super().leave()
        self.core.cancel()


class LocalAcker(_LocalProcess):
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
        if self.messages:
            message = self.messages.popleft()
            happened = True
            if isinstance(message, AckRouting):
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
        self.core.retry()
        if now >= self._watch_at:
            self._watch_at = now + 0.05
            self.core.watch(now)
        return happened

    def wake_at(self) -> float:
        """Return the time at which something happens by itself."""
        return self._watch_at


class LocalProber:
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
