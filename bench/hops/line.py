"""A topology as a line of real cores with real sockets, all in one process and thread: what each of them does can be timed.

The driver is the real one, but runs beside the clock: what is timed are the slices of the sub-units. A slice is one round of
`SubUnitLoop`; they take turns in the order of the plan, and who has nothing to do is passed over, as a process sleeps.
What is missing against a run: other processes on the cores and in the caches, and what it takes the system to wake a process.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bench.workloads.topologies import Offered
from esault.control.run.driver import Driver
from esault.flow.worker.bolt_unit import BoltSubUnit
from esault.flow.worker.environment import Environment
from esault.flow.worker.spout_unit import SpoutSubUnit
from esault.flow.worker.sub_unit import SubUnit
from esault.messages.control import Build, Built, Fork, Release
from esault.messages.settings import Settings
from esault.runtime.net.inlets import Inlets
from esault.runtime.net.links import UnixWire
from esault.runtime.process.usage import process_usage
from esault.runtime.worker.data_loop import TURNS
from esault.state.dead_letter_file import DeadLetterFile
from esault.topology.builder import Topology
from esault.topology.plan import UnitPlan

__all__ = ["Gate", "Hop", "Line"]

#: seconds after which a line hangs
LONGEST = 120.0


class Gate(Offered):
    """A load that is read up to a mark: between two stretches nothing is under way."""

    def __init__(self, load: str) -> None:
        super().__init__(load, 1_000_000)
        self.left = 0

    def read(self, limit: int) -> list[tuple[Any, Any]]:
        if not self.left:
            return []
        rows = super().read(min(limit, self.left))
        self.left -= len(rows)
        return rows


class Hop:
    """A sub-unit with its sockets, and the nanoseconds of its slices."""

    def __init__(self, build: Build, plan: UnitPlan, folder: str) -> None:
        self.name = plan.name
        self.inlets, self.wire = Inlets(folder, build.incarnation), UnixWire()
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[0], False)
        kind = SpoutSubUnit if plan.kind == "spout" else BoltSubUnit

        def letters(path: str | None) -> DeadLetterFile:
            return DeadLetterFile(path, build.incarnation)

        def clock() -> float:
            return time.monotonic() + self._offset

        self._offset = time.time() - time.monotonic()
        self.core: SubUnit = kind(build, plan, Environment(self.wire, clock, letters, 1, folder))
        self.core.metrics.usage = process_usage()
        self._ready = select.epoll()
        for number in (self.inlets.data.fileno(), self.inlets.express.fileno(), self.wire.fileno()):
            self._ready.register(number, select.EPOLLIN)
        self.inlets.watch(self._pipe[0])
        self.inlets.watch(self.wire.fileno())
        self.mail: deque[Any] = deque()
        self._asleep = False
        self._wake_at = 0.0
        self.nanoseconds = 0
        self.outbox: deque[Any] = deque(
            [Built(build.incarnation, os.getpid(), self.inlets.data.endpoint, self.inlets.express.endpoint)]
        )

    @property
    def rows(self) -> int:
        """Rows that this hop has worked on: read by a spout, taken in by a bolt."""
        return self.core._spout.rows if isinstance(self.core, SpoutSubUnit) else self.core.metrics.tuples_in

    def due(self) -> bool:
        """Whether a process would be awake."""
        if not self._asleep or self.mail or self.core.clock() >= self._wake_at:
            return True
        came = [number for number, _ in self._ready.poll(0)]
        return bool(came) and (self.core.may_read or came != [self.inlets.data.fileno()])

    def run(self) -> bool:
        """A slice, timed as a whole; whether it did something."""
        begun = time.perf_counter_ns()
        worked = self.slice()
        self.nanoseconds += time.perf_counter_ns() - begun
        return worked

    def slice(self) -> bool:
        """One round of the loop of a process, beginning with the end of its wait."""
        core = self.core
        if self._asleep:
            self.wake_up()
        while self.mail:
            core.handle(self.mail.popleft())
        if core.may_read:
            self.receive()
        self.express()
        self.wire.retry()
        worked = did = False
        for _ in range(TURNS):
            worked = core.turn()
            did = did or worked
            if not worked or self.mail:
                break
        if core.outbox:
            self.outbox.extend(core.outbox)
            core.outbox.clear()
        if not worked and not self.mail:
            self.wait()
        return did

    def receive(self) -> None:
        """Frames of data."""
        self.inlets.data.read(self.core.read)

    def express(self) -> None:
        """Acks."""
        self.inlets.express.read(self.core.read)

    def wait(self) -> None:
        """A process would sleep here until `due`."""
        self._wake_at = self.core.wake_at()
        self._asleep = self._wake_at > self.core.clock()

    def wake_up(self) -> None:
        """What it takes to find that something came; no time passes, as it has come."""
        self._asleep = False
        late = self.core.clock() >= self._wake_at or not self._ready.poll(0)
        self.inlets.wait(0.0 if late else 0.001, self.core.may_read)
        with contextlib.suppress(BlockingIOError):
            os.read(self._pipe[0], 4096)

    def close(self) -> None:
        """The process ends."""
        self.core.close()
        self.inlets.close()
        self.wire.close()
        self._ready.close()
        for number in self._pipe:
            os.close(number)


class Line:
    """The hops of a topology, one sub-unit each, in the order of the plan, ready to work.

    `folder` is for its sockets. `root_rows` rows in each root, from the first on: how roots grow depends on the time that
    they take, and that is not the same where all hops share a thread. Raises RuntimeError where the topology fails.
    """

    def __init__(self, topology: Topology, load: str, folder: str, root_rows: int, **settings: Any) -> None:
        plan = topology.plan()
        spouts = [unit.name for unit in plan.units.values() if unit.kind == "spout"]
        if len(spouts) != 1:
            raise ValueError(f"a line has one spout, and {plan.name} has {len(spouts)}")
        self.gate = Gate(load)
        units = {**plan.units, spouts[0]: replace(plan.units[spouts[0]], spout=self.gate)}
        self.plan = replace(plan, units=units)
        self._folder = folder
        self._by_incarnation: dict[int, Hop] = {}
        made = Settings(root_rows=root_rows, **settings)
        self.driver = Driver(self.plan, "bench", "localhost", made, None)
        self.driver.start(time.time())
        self._tick_at = 0.0
        self._until(lambda: self.driver.phase == "running" and all(hop.core.started for hop in self.hops))
        for hop in self.hops:
            size = hop.core.roots.size
            size._least = size.rows = root_rows

    @property
    def hops(self) -> Sequence[Hop]:
        """In the order in which rows pass through them."""
        order = list(self.plan.units)
        return sorted(self._by_incarnation.values(), key=lambda hop: order.index(hop.name))

    def offer(self, rows: int) -> None:
        """Have so many rows of the load pass through, to the last ack."""
        hops = self.hops
        self.gate.left = rows
        self._until(
            lambda: (
                not self.gate.left
                and not any(hop.core.roots.open_count or hop.core.reader.inbox or hop.core.acks for hop in hops)
                and not any(channel.rows for hop in hops for channel in hop.core.outputs.channels)
                and not any(sink.due_at for hop in hops for sink in hop.core.outputs.sinks)
            )
        )

    def _until(self, done: Any) -> None:
        hang_at = time.monotonic() + LONGEST
        while not done():
            did = self._drive()
            for hop in self.hops:
                if hop.due():
                    did = hop.run() or did
                while hop.outbox:
                    self.driver.handle(hop.outbox.popleft(), time.time())
            if self.driver.failure is not None:
                raise RuntimeError(self.driver.failure)
            if not did and time.monotonic() > hang_at:
                raise RuntimeError(f"{self.plan.name}: the line did not come to rest within {LONGEST:.0f} s")

    def _drive(self) -> bool:
        driver, now = self.driver, time.time()
        did = bool(driver.outbox)
        while driver.outbox:
            address, message = driver.outbox.popleft()
            if isinstance(message, Fork):
                build = message.build
                self._by_incarnation[build.incarnation] = Hop(build, self.plan.units[build.unit], self._folder)
            elif address in self._by_incarnation and not isinstance(message, Build | Release):
                self._by_incarnation[address].mail.append(message)
        if driver.phase == "beginning":
            driver.begun(now)
            did = True
        if now >= self._tick_at:
            self._tick_at = now + 0.25
            driver.tick(now)
        return did

    def close(self) -> None:
        """Give up sockets; sinks are closed, so that they write what they have seen."""
        for hop in self.hops:
            for sink in hop.core.outputs.sinks:
                sink.close()
            hop.close()
