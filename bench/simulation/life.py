"""One command's run in a simulation: the driver, the machines, and what goes between them.

The cores are those of the engine; what is of `esault.runtime` alone (threads, sockets, forks) has a stand-in here that does as it does.

It is one module of over 300 lines: each kind of message passes between driver and machines here.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bench.simulation.events import EPOCH
from bench.simulation.machine import Machine
from bench.simulation.network import Channel, DataLink, Inlet, Wire
from bench.simulation.outside import with_tables
from bench.simulation.process import Process
from esault.background import BackgroundLoop
from esault.control.placement.placement import Cluster
from esault.control.run.driver import Driver
from esault.control.run.evacuation import Evacuation
from esault.errors import CheckpointError, EsaultError, UsageError
from esault.event_loop import SteppedLoop
from esault.flow.operators.user_error import UserError, is_transient, pack_cause
from esault.flow.send.recommit import go_back, recommit
from esault.flow.worker.environment import Environment
from esault.messages.checkpoint import CompletedCheckpoint
from esault.messages.control import Exited, Failed, Fork, Kill, PeekedState
from esault.messages.delivery import Delivery
from esault.runtime.remote.host_connection import SILENCE
from esault.state.spool import spooled
from esault.testing.local_process import LocalAcker, LocalSubUnit
from esault.testing.memory_connectors import DeadLetterList

if TYPE_CHECKING:
    from bench.simulation.simulation import Simulation

__all__ = ["Life"]

#: the machine of the command and the driver
AT = "home"
#: seconds between two ticks of the driver: the real one's, and where sub-units say how they are as seldom
TICK, LONGEST_TICK = 0.25, 1.0
#: slots of each host
SLOTS = 12
#: seconds in which processes see that their driver is gone
OWNER_LOOK = 1.0


class Life:
    """See the module. `over` is called with what ended it: None for an end in order."""

    def __init__(
        self,
        simulation: Simulation,
        number: int,
        kept: CompletedCheckpoint | None,
        last_number: int,
        parallelism: Mapping[str, int],
        over: Callable[[Life], None],
    ) -> None:
        self.simulation, self.number = simulation, number
        self.events, self.network, self.history = simulation.events, simulation.network, simulation.history
        self.counts = simulation.history.counts
        self.order = random.Random(f"{simulation.seed} life {number}")
        self.at = AT
        self._over = over
        #: how it ended: None while it lasts, "" in order, else why not
        self.ended: str | None = None
        self.killed = False
        self.inlets: dict[str, Inlet] = {}
        #: data links between machines
        self.far_links: list[DataLink] = []
        self._channels: dict[tuple[str, int], Channel] = {}
        #: messages to processes that are not there yet
        self._mail: dict[int, deque[Any]] = defaultdict(deque)
        self._inbox: deque[Any] = deque()
        self._handling = False
        self.frozen = False
        self._committing = False
        self._begun = False
        self._begin_at = 0.0
        self._background = BackgroundLoop()
        self._dead_letters = DeadLetterList()
        self._told_lines = 0
        #: machines that are part of the run, by name
        self.machines: dict[str, Machine] = {}
        #: those that are not any more, and whose processes may not know it
        self.ghosts: list[Machine] = []
        self._where: dict[int, Machine] = {}
        #: sub-units that were made for this run
        self.own: set[int] = set()
        scenario = simulation.scenario
        self.settings = scenario.settings
        self.exactly = self.settings.delivery is Delivery.EXACTLY_ONCE
        self.cluster: Cluster | None = None
        self._evacuation = Evacuation()
        if scenario.hosts > 1:
            self.cluster = Cluster()
            for i in range(scenario.hosts):
                self._join(f"h{i}")
        else:
            self.machines[AT] = Machine(self, AT, True)
        plan = scenario.plan
        units = {name: with_tables(unit, simulation.outside, scenario.sinks) for name, unit in plan.units.items()}
        for name in scenario.program.spouts:
            units[name] = replace(units[name], spout=scenario.source(name, self.events))
        state_dir = simulation.state_dir
        self.driver = Driver(
            plan=replace(plan, units=units),
            run=f"run-{number}",
            host=AT,
            settings=self.settings,
            parallelism=parallelism,
            slots=SLOTS * 4,
            completed=kept,
            keep=None if state_dir is None else self._keep,
            find=None if state_dir is None else state_dir.newest,
            last_number=last_number,
            resources=self.cluster,
            lineage="simulated",
        )
        self.driver.start(self.now())
        self._carry()
        self._tick_every = min(LONGEST_TICK, max(TICK, self.settings.status_every))
        self.events.after(self._tick_every, "tick", self._tick)

    def now(self) -> float:
        """The driver's clock."""
        return EPOCH + self.events.now + self.offset(AT)

    def offset(self, machine: str) -> float:
        """Return how far a machine's clock is ahead."""
        return self.simulation.offsets.get(machine, 0.0)

    def tell(self, text: str) -> None:
        """A line of the history."""
        self.history.tell(text)

    # the driver ----------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self.ended is not None:
            return
        self.events.after(self._tick_every, "tick", self._tick)
        if self.frozen:
            return
        self._come_back()
        if self.cluster is not None:
            self._evacuation.step(self.driver, self.cluster, self.now())
        self._guarded(self.driver.tick, self.now())
        self._carry()

    def _guarded(self, call: Callable[..., Any], *arguments: Any) -> None:
        """As the driver's actor: no host will do for one that must be made."""
        try:
            call(*arguments)
        except UsageError as error:
            self.driver.fail(str(error), self.now())

    def arrived(self, message: Any) -> None:
        """A message for the driver is there."""
        self._inbox.append(message)
        self._wake()

    def _wake(self) -> None:
        if not self._handling and self._inbox and not self.frozen and self.ended is None:
            self._handling = True
            self.events.after(self.order.uniform(0.00005, 0.0005), "driver", self._handle)

    def _handle(self) -> None:
        self._handling = False
        if self.frozen or self.ended is not None:
            return
        for _ in range(self.order.randint(1, 3)):
            if self._inbox:
                self._take(self._inbox.popleft())
        self._carry()
        self._wake()

    def _take(self, message: Any) -> None:
        if isinstance(message, PeekedState):
            self.driver.commands.states.answered(message)
        else:
            self._guarded(self.driver.handle, message, self.now())

    def _carry(self) -> None:
        """Deliver what the driver has to say; what `DriverActor._carry` does."""
        core, simulation = self.driver, self.simulation
        self._deliver()
        simulation.asked.look()
        run = core.run_checkpoints
        if run.committing is not None and not self._committing:
            self._committing = True
            self.events.after(self.order.uniform(0.0005, 0.05), "commit", self._commit, run.committing)
        if core.phase == "beginning" and not self._committing and self.events.now >= self._begin_at:
            try:
                go_back(core.completed, core.plan.sinks, self._background, bool(core.restores.all))
                if self.exactly:
                    simulation.asked.gone_back()
                core.begun(self.now())
            except (EsaultError, UserError) as error:
                wait = None
                if core.restores.all and is_transient(error):
                    wait = core.restarts.wait("the driver", str(error), self.now())
                if wait is None:
                    core.fail(str(error), self.now(), pack_cause(error))
                else:
                    self._begin_at = self.events.now + wait
            self._deliver()
        while core.notices:
            self.tell(f"driver: {core.notices.popleft().partition(chr(10))[0][:160]}")
        if core.phase == "ended" and self.ended is None:
            self._end()

    def _commit(self, kept: CompletedCheckpoint) -> None:
        self._committing = False
        if self.ended is not None or self.driver.run_checkpoints.committing is None:
            return
        core, now = self.driver, self.now()
        try:
            recommit(kept, core.plan.sinks, self._background, whole=False)
        except (EsaultError, UserError) as error:
            wait = core.run_checkpoints.commit_failed(str(error), pack_cause(error), is_transient(error), now)
            self._begin_at = self.events.now + wait
        else:
            core.run_checkpoints.committed(now)
        self._carry()

    def _deliver(self) -> None:
        while self.driver.outbox:
            address, message = self.driver.outbox.popleft()
            if address == "keeper":
                self._to_keeper(message)
            else:
                self._to_process(address, message)

    def _keep(self, completed: CompletedCheckpoint) -> None:
        assert self.simulation.state_dir is not None
        self.simulation.state_dir.keep(completed)
        self.counts["checkpoints"] += 1
        self.counts["unaligned checkpoints"] += any(unit.in_flight for unit in completed.units.values())

    def _end(self) -> None:
        core = self.driver
        if core.died_late and core.failure is None:
            try:
                recommit(core.completed, core.plan.sinks, self._background)
            except (EsaultError, UserError) as error:
                core.failure = str(error)
        self.ended = core.failure or ""
        self.tell(
            f"run {self.number} has ended" + (f": {core.failure.partition(chr(10))[0][:300]}" if core.failure else "")
        )
        self._gather()
        for machine in [*self.machines.values(), *self.ghosts]:
            self.events.after(self.order.uniform(0.01, 0.3), "leave", machine.end, "the run is over")
        self._over(self)

    def _gather(self) -> None:
        core = self.driver
        self.counts["restores"] += len(core.restores.all)
        self.counts["deaths"] += core.deaths
        self.counts["restarts"] += core.restarts.count
        for unit in core.units.values():
            for record in unit.changes:
                self.counts["dropped" if record.dropped else record.kind] += 1
                self.counts["moved keys"] += record.moved_keys

    def kill(self) -> None:
        """The driver dies, and with it the run; its processes find out."""
        self.ended, self.killed = "killed", True
        self.tell(f"run {self.number} is killed")
        self._gather()
        for machine in [*self.machines.values(), *self.ghosts]:
            if machine.alone:
                self.events.after(self.order.uniform(0.0, OWNER_LOOK), "owner", machine.end, "the driver is gone")
            elif self.network.open(AT, machine.name):
                machine.down.put(machine.end, "the driver is gone")
            else:
                machine.silence()
        self._over(self)

    def lose_power(self) -> None:
        """The driver's machine loses its power, and with it all that is there."""
        for machine in [*self.machines.values(), *self.ghosts]:
            if machine.alone:
                machine.over = True
                for process in machine.processes.values():
                    process.die()
                machine.processes.clear()
        self.kill()

    def freeze(self) -> None:
        """The driver's process stands still."""
        self.frozen = True
        for machine in self.machines.values():
            machine.silence()

    def thaw(self) -> None:
        """It goes on. What has come meanwhile waits for it; hosts that were silent for too long are lost."""
        self.frozen = False
        for machine in list(self.machines.values()):
            if machine.over:
                self._lose(machine, "it has left")
            elif self.speaks_to(machine):
                machine.down.put(machine.heard)
        self._wake()

    # to and from machines ------------------------------------------------------------------------------

    def speaks_to(self, machine: Machine) -> bool:
        """Return whether the driver's word gets there now."""
        gone = self.frozen or self.ended is not None or not machine.part
        return not gone and self.network.open(AT, machine.name)

    def _channel(self, name: str, incarnation: int) -> Channel:
        key = (name, incarnation)
        if key not in self._channels:
            self._channels[key] = Channel(self.network, AT, AT, f"{name} {incarnation}")
        return self._channels[key]

    def _to_keeper(self, message: Any) -> None:
        if isinstance(message, Fork):
            incarnation = message.build.incarnation
            machine = self.machines.get(message.build.host if self.cluster is not None else AT)
            if machine is not None:
                self._where[incarnation] = machine
        else:
            incarnation = message.incarnation
        machine = self._where.get(incarnation)
        if machine is None or not machine.part:
            if isinstance(message, (Fork, Kill)):
                self._where.pop(incarnation, None)
                self.arrived(Exited(incarnation, "its host is lost"))
        elif machine.alone:
            self._channel("to keeper", 0).put(machine.keep, message)
        else:
            machine.down.put(machine.keep, message)

    def _to_process(self, incarnation: int, message: Any) -> None:
        machine = self._where.get(incarnation)
        if machine is None or not machine.part:
            return
        channel = self._channel("to", incarnation) if machine.alone else machine.down
        channel.put(self._hand_over, machine, incarnation, message)

    def _hand_over(self, machine: Machine, incarnation: int, message: Any) -> None:
        process = machine.processes.get(incarnation)
        if process is None:
            self._mail[incarnation].append(message)  # it is being forked
        else:
            process.take(message)

    def from_machine(self, machine: Machine, message: Any) -> None:
        """A process or the keeper there says something."""
        if machine.alone:
            kind = "keeper" if isinstance(message, Exited) else "from"
            self._channel(kind, 0 if kind == "keeper" else message.incarnation).put(self.arrived, message)
        elif machine.part:
            machine.up.put(self._heard, machine, message)

    def _heard(self, machine: Machine, message: Any) -> None:
        if machine.part:
            if isinstance(message, Exited):
                self._where.pop(message.incarnation, None)
            self.arrived(message)

    # hosts come and go -----------------------------------------------------------------------------------

    def _join(self, name: str) -> None:
        assert self.cluster is not None
        self.machines[name] = Machine(self, name, False)
        self.cluster.join(name, SLOTS)

    def cut(self, source: str, target: str) -> None:
        """A way is cut: who waits for a word along it finds out."""
        self.network.cut(source, target)
        if source == AT and target in self.machines:
            self.machines[target].silence()
        if target == AT and source in self.machines:
            self.watch(self.machines[source])

    def heal(self, source: str, target: str) -> None:
        """It is open again."""
        self.network.heal(source, target)
        machine = self.machines.get(target)
        if source == AT and machine is not None and self.speaks_to(machine) and not machine.frozen:
            machine.heard()

    def watch(self, machine: Machine) -> None:
        """Nothing comes from there any more: it is lost unless that changes soon."""
        since = self.events.now
        self.events.after(SILENCE + self.order.uniform(0.0, 0.3), f"watch {machine.name}", self._watch, machine, since)

    def _watch(self, machine: Machine, since: float) -> None:
        cut = self.network.cuts.get((machine.name, AT), float("inf"))
        if machine.part and self.ended is None and (cut <= since or machine.frozen):
            if self.frozen:
                self.events.after(0.1, f"watch {machine.name}", self._watch, machine, since)
            else:
                self._lose(machine, f"no word from it for {SILENCE} s")

    def host_left(self, machine: Machine) -> None:
        """A host says goodbye."""
        if not self.frozen:
            self._lose(machine, "it has left")

    def _lose(self, machine: Machine, why: str) -> None:
        if not machine.part or self.cluster is None or self.ended is not None:
            return
        machine.part = False
        self.tell(f"host {machine.name} is lost: {why}")
        self.counts["hosts lost"] += 1
        self.cluster.lose(machine.name)
        del self.machines[machine.name]
        self.ghosts.append(machine)
        for incarnation, where in list(self._where.items()):
            if where is machine:
                del self._where[incarnation]
                self.arrived(Exited(incarnation, f"its host {machine.name} is lost"))
        machine.up.close()
        if self.network.open(AT, machine.name) and not machine.frozen:
            machine.down.put(machine.end, "the driver has hung up")
        else:
            machine.silence()
        if not self.machines and self.driver.phase not in ("stopping", "ended"):
            self.driver.fail("the last host of the run is lost: it ends here", self.now())

    def _come_back(self) -> None:
        """Hosts that were lost and can be reached take part again, with nothing of what they had."""
        if self.cluster is None:
            return
        self.ghosts = [ghost for ghost in self.ghosts if not ghost.over]
        for i in range(self.simulation.scenario.hosts):
            name = f"h{i}"
            reached = self.network.open(AT, name) and self.network.open(name, AT)
            standing = any(ghost.name == name and ghost.frozen for ghost in self.ghosts)
            down = self.simulation.down_until.get(name, 0.0) > self.events.now
            if name not in self.machines and reached and not standing and not down and self.order.random() < 0.2:
                self.tell(f"host {name} is back")
                self._join(name)

    # processes -----------------------------------------------------------------------------------------

    def make(self, machine: Machine, build: Any, spout: Any) -> Process | None:
        """A process begins to live; None: it cannot, which the driver is told."""
        simulation = self.simulation
        self.own.add(build.incarnation)
        process = Process(machine, build.incarnation, build.unit or "ack server", self.order)
        wire: Any = Wire(self.network, self.inlets, machine.name, process.wake, self.far_links)

        def clock() -> float:
            return EPOCH + self.events.now + self.offset(machine.name)

        if not build.unit:
            local: LocalAcker | LocalSubUnit = LocalAcker(build, wire, clock)
        else:
            scenario = simulation.scenario
            unit = with_tables(scenario.plan.units[build.unit], simulation.outside, scenario.sinks)
            if unit.kind == "spout":
                unit = replace(unit, spout=spout or scenario.source(build.unit, self.events))
                if spout is None and unit.spooled and self.exactly and simulation.folder is not None:
                    unit = spooled(unit, simulation.folder, build.part)
            environment = Environment(
                wire=wire,
                clock=clock,
                dead_letters=lambda path: self._dead_letters,
                seed=self.order.getrandbits(32),
                run_dir=None,
                state_store=simulation.state_store if self.exactly else None,
                event_loop=SteppedLoop,
                background=self._background,
            )
            try:
                local = LocalSubUnit(build, unit, wire, environment)
            except Exception as error:
                told = str(error), pack_cause(error), isinstance(error, CheckpointError), is_transient(error)
                machine.say(Failed(build.incarnation, build.unit, *told))
                return None
        process.begin(local)
        for message in self._mail.pop(build.incarnation, ()):
            process.take(message)
        return process
