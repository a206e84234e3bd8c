"""A whole run in one process: the cores of the actors, over queues in memory.

It is one module of over 300 lines: it is the one public object for tests, and most of its lines are its methods'
documentation.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from esault.background import BackgroundLoop, in_background
from esault.control.report.summary import how_ended
from esault.control.report.summary import report as make_report
from esault.control.run.driver import Driver
from esault.elasticity.scaling import EVERY_UNIT
from esault.errors import CheckpointError, TopologyFailed, UsageError
from esault.event_loop import SteppedLoop
from esault.flow.operators.user_error import pack_cause, read_cause
from esault.flow.worker.environment import Environment
from esault.flow.worker.spout_unit import SpoutSubUnit
from esault.messages.checkpoint import CompletedCheckpoint
from esault.messages.control import Build, DumpThreads, Exited, Failed, Fork, Kill, Release
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.payload.column import plain
from esault.report import Report
from esault.routing.table import OutputTable
from esault.routing.table_change import merged, moved, split
from esault.state.place import Place
from esault.state.spool import spooled
from esault.state.state_dir import StateDir
from esault.state.state_store import FileStateStore
from esault.testing.local_plans import LocalPlans, LocalSinks
from esault.testing.local_process import LocalAcker, LocalProber, LocalSubUnit
from esault.testing.manual_clock import ManualClock
from esault.testing.memory_connectors import LocalDeadLetters
from esault.testing.memory_state_store import MemoryStateStore
from esault.testing.memory_wire import MemoryWire
from esault.topology.builder import Topology, plan_maker
from esault.topology.chaining import chain
from esault.topology.context import at_once
from esault.topology.plan import Plan
from esault.topology.spout import Spout

__all__ = ["LocalRuntime"]


def _with_checks(settings: Settings, real: bool) -> Settings:
    """Look for what a cluster would find by chance alone, where nothing is said about it."""
    if settings.watch_values is None:
        settings = replace(settings, watch_values=not real)
    return settings if settings.reload_state is not None else replace(settings, reload_state=True)


class LocalRuntime:
    """Runs a topology in this process: seeded order, manual clock, scripted faults; nothing is written.

    ```python
    local = LocalRuntime(topology(), spouts={"lines": [("f", "a b a")]})
    local.run_until_drained()
    assert sorted(local.emitted("count")) == [("a", 1), ("a", 2), ("b", 1)]
    ```

    `spouts` gives tuples, or other spouts, in place of spouts, by name; where several sub-units read, the first one gives them all, in
    their order, unless the other spout is `parallel`. Sinks are collected, not written (`landed`). Values that are changed after they were
    emitted are found. The same `seed` gives the same order of events.
    """

    def __init__(
        self,
        topology: Topology | Plan | Callable[[], Topology | Plan],
        *,
        spouts: Mapping[str, Iterable[tuple[Any, Any]] | Spout[Any, Any]] | None = None,
        seed: int = 0,
        clock: ManualClock | None = None,
        parallelism: Mapping[str, int] | None = None,
        settings: Settings | None = None,
        real: bool = False,
        run: str = "local",
        run_dir: str | None = None,
        plan: Plan | None = None,
        policies: Mapping[str, str] | None = None,
        state_dir: Place | None = None,
        kept: CompletedCheckpoint | None = None,
        last_number: int = 0,
        lineage: str = "",
        continues: tuple[str, int] | None = None,
        from_savepoint: bool = False,
    ) -> None:
        """`state_dir`: where checkpoints are kept, which the caller has locked (in memory by default); `kept`: the one to go on
        from; `last_number`: after which new ones are numbered; `lineage`: identity of `state_dir`; `continues`: the run that this one goes on with, and from which of its checkpoints; `from_savepoint`: `kept` was one. `policies` scales units by themselves, by name (`{"count": "probe"}`); without it nothing does.

        `real=True` is for `--engine local`: the real sinks and files of dead letters, and the real clock unless a `clock` is given. Raises
        TopologyError, UsageError.
        """
        plan_of = plan_maker(topology)
        self._real = real
        settings = _with_checks(settings or Settings(), real)
        if settings.chaining:
            unchained, apart = plan_of, {*settings.unchained, *(parallelism or {}), *(policies or {})}
            apart |= set() if kept is None else kept.apart
            plan_of = lambda: chain(unchained(), apart)
            plan = None if plan is None else chain(plan, apart)
        self.plan = plan or plan_of()
        self.clock = clock or ManualClock()
        self._now: Callable[[], float] = time.time if real and clock is None else self.clock
        self._order = random.Random(seed)
        self._wire = MemoryWire()
        self._processes: dict[int, LocalSubUnit | LocalAcker] = {}
        self._emitted: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
        self._landed: dict[str, list[Any]] = {sink.name: [] for sink in self.plan.sinks}
        self._prepared: dict[int, list[Any]] = {}  # rows that sinks have prepared and not committed
        self.background = BackgroundLoop()  # of the coroutines of real sinks
        self._sinks = LocalSinks(self.plan.sinks, real, self._landed, self._prepared, self.background)
        self._dead_letters = LocalDeadLetters(real)
        self._run_dir = run_dir
        self._run = run
        self._lineage, self._from_savepoint = lineage or run, from_savepoint
        self._exits: deque[Exited] = deque()
        self.state_store: Any = MemoryStateStore() if state_dir is None else FileStateStore(state_dir, waits=True)
        self._state_dir = state_dir
        self.kept: list[CompletedCheckpoint] = []  # all complete ones, where they are kept in memory
        self._plans = LocalPlans(self.plan, plan_of, spouts or {}, real, self._landed, self._prepared)
        probes = "memory://probes" if policies else ""
        chosen = {EVERY_UNIT: "none", **(policies or {})}
        kept_in = None if state_dir is None else StateDir(state_dir, locked=False, last_number=last_number)
        self.driver = Driver(
            plan=self._plans.of_driver(),
            run=run,
            host="localhost",
            settings=settings,
            parallelism=parallelism,
            policies=chosen,
            probes=probes,
            completed=kept,
            keep=self.kept.append if kept_in is None else kept_in.keep,
            find=None if kept_in is None else kept_in.newest,
            last_number=last_number,
            lineage=self._lineage,
            continues=continues,
        )
        self._prober = LocalProber(self._wire, probes, self.driver.epoch) if policies else None
        self._tick_every = min(0.25, self.driver.scaling.shortest_period or 0.25)
        self.driver.start(self._now())
        self._tick_at = self._now()

    # running ---------------------------------------------------------------------------------------

    def step(self) -> bool:
        """One slice of one process's life, or of the driver's; whether anything happened."""
        now = self._now()
        happened = False
        while self.driver.outbox:
            address, message = self.driver.outbox.popleft()
            happened = True
            if address == "keeper":
                self._keep(message)
            elif isinstance(message, (Build, DumpThreads)):
                pass  # its process was made with it; the actor's thread would answer
            elif address in self._processes:
                self._processes[address].messages.append(message)
        if self.driver.phase == "beginning":
            self._sinks.begin(self.driver, self._run, self._lineage, self._from_savepoint)
            self.driver.begun(now)
            happened = True
        if self.driver.run_checkpoints.committing is not None:
            self._sinks.commit_for_run(self.driver, now)
            happened = True
        if now >= self._tick_at:
            self._tick_at = now + self._tick_every
            if self._prober is not None:
                self.driver.scaling.probed(self._prober.run(self.driver.probe_targets(), self.driver.epoch, now))
            self.driver.tick(now)
        processes = [process for process in self._processes.values() if not process.frozen]
        self._order.shuffle(processes)
        for process in processes:
            happened = process.run(self._order) or happened
            if process.outbox and (self._order.random() < 0.7 or process.gone):
                happened = True
                self._take(process.outbox.popleft(), now)
                while process.gone and process.outbox:
                    self._take(process.outbox.popleft(), now)
            if process.gone:
                self._processes.pop(process.incarnation, None)
        while self._exits:
            happened = True
            self.driver.handle(self._exits.popleft(), now)
        if self.driver.phase == "ended" and self.driver.died_late:
            self.driver.died_late = False
            self._sinks.commit_again(self.driver)
        return happened

    def _take(self, message: Any, now: float) -> None:
        if not self.driver.commands.handle(message):
            self.driver.handle(message, now)

    def now(self) -> float:
        """The time of this run, seconds since the epoch."""
        return self._now()

    def collected(self) -> dict[str, list[Any]]:
        """Rows of `Collect` sinks that really ran, by the sink's name."""
        return self._plans.collected()

    def wait(self) -> None:
        """Nothing happens by itself now: let time pass until something does."""
        at = min(
            [process.wake_at() for process in self._processes.values() if not process.frozen], default=self._tick_at
        )
        at = min(at, self._tick_at)
        if self._now is time.time:
            time.sleep(min(0.001, max(0.0, at - self._now())))
        else:
            self.clock.advance_to(max(at, self._now() + 1e-6))

    def run_until_drained(self, most_seconds: float = 3600.0) -> None:
        """Run until the spouts have ended and all is processed; those that are `Sent` end now. Raises TopologyFailed, also when time is up."""
        self._plans.end_sent()
        until = self._now() + most_seconds
        self._run_while(lambda: self._now() <= until)
        if self.driver.phase != "ended":
            raise TopologyFailed(f"{self.plan.name}: not drained after {most_seconds} s", self.report())

    def send(self, spout: str, *tuples: tuple[Any, Any], seconds: float = 1.0) -> None:
        """Have a spout that is `Sent` read these (key, value), and run for so long. Raises UsageError, TopologyFailed."""
        sent = self._plans.sent(spout)
        for each in tuples:
            if type(each) is not tuple or len(each) != 2:
                raise UsageError(
                    f"send({spout!r}, ...): {each!r} is not (key, value); write send({spout!r}, (key, value), (key, value))"
                )
        if self.driver.phase == "ended":
            raise UsageError(f"send({spout!r}, ...): the run has ended, and reads no more")
        sent.add(tuples)
        self.run_for(seconds)

    def run_for(self, seconds: float) -> None:
        """Run for so long, or until the end. Raises TopologyFailed."""
        until = self._now() + seconds
        self._run_while(lambda: self._now() < until)

    def run_until(self, predicate: Callable[[], object], most_seconds: float = 3600.0) -> None:
        """Run until `predicate()` holds. Raises TopologyFailed where the run fails, ends or takes longer before."""
        until = self._now() + most_seconds
        self._run_while(lambda: not predicate() and self._now() <= until)
        if not predicate():
            why = "the run had ended" if self.driver.phase == "ended" else f"{most_seconds:g} s had passed"
            raise TopologyFailed(f"{self.plan.name}: {why} before the predicate of run_until held", self.report())

    def _run_while(self, goes_on: Callable[[], bool]) -> None:
        while self.driver.phase != "ended" and goes_on():
            if not self.step():
                self.wait()
        if self.driver.failure is not None:
            raise TopologyFailed(self.driver.failure, self.report()) from read_cause(self.driver.cause)

    def drain(self) -> None:
        """Have the spouts read no more."""
        self.driver.drain(self._now())

    def stop_at_once(self) -> None:
        """End here, without draining: what is in flight is lost."""
        self.driver.stop_at_once(self._now())
        for process in self._processes.values():
            process.leave()
        self._processes.clear()
        self.driver.phase = "ended"

    def _keep(self, message: Any) -> None:
        if isinstance(message, Fork):
            build = message.build
            if not build.unit:
                self._processes[build.incarnation] = LocalAcker(build, self._wire, self._now)
                return
            unit = self._plans.of_sub_unit(build.unit, build.part)
            if message.reused:
                spout = self._spout_of(message.reused)
                if spout is None:
                    self._exits.append(Exited(build.incarnation, "its process is gone"))
                    return
                unit = replace(unit, spout=spout)
            elif unit.spooled and self.driver.settings.delivery is Delivery.EXACTLY_ONCE:
                unit = spooled(unit, self._folder(), build.part)
            try:
                process = LocalSubUnit(
                    build,
                    unit,
                    self._wire,
                    Environment(
                        wire=self._wire,
                        clock=self._now,
                        dead_letters=self._dead_letters.of(build.incarnation),
                        seed=self._order.getrandbits(32),
                        run_dir=self._run_dir,
                        state_store=self.state_store
                        if self.driver.settings.delivery is Delivery.EXACTLY_ONCE
                        else None,
                        event_loop=SteppedLoop,
                        background=self.background,
                        in_thread=in_background if self._now is time.time else at_once,
                        pause=time.sleep if self._now is time.time else self.clock.advance,
                    ),
                )
            except Exception as error:
                what = str(error), pack_cause(error), isinstance(error, CheckpointError)
                self.driver.handle(Failed(build.incarnation, build.unit, *what), self._now())
                return
            if not self._real:
                process.core.observer = process.core.outputs.observer = self._observe
            self._processes[build.incarnation] = process
        elif isinstance(message, Kill):
            if message.incarnation in self._processes:
                self.kill(message.incarnation)
        elif isinstance(message, Release):
            process_now = self._processes.get(message.incarnation)
            if process_now is not None:
                process_now.leave()
                del self._processes[message.incarnation]

    def _folder(self) -> Path:
        """For what cannot be kept in memory alone, since it must outlive an object that dies."""
        if isinstance(self._state_dir, Path):
            return self._state_dir
        folder = Path(tempfile.mkdtemp(prefix="esault-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        if self._state_dir is None:
            self._state_dir = folder
        return folder

    def _spout_of(self, old: int) -> Spout[Any, Any] | None:
        """That of a living process, which becomes another sub-unit."""
        process = self._processes.pop(old, None)
        if process is None or not isinstance(process.core, SpoutSubUnit):
            return None
        process.leave()
        return process.core.spout

    def _observe(self, unit: str, stream: str, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self._emitted.setdefault((unit, stream), []).extend(zip(plain(keys), plain(values)))

    # changes -----------------------------------------------------------------------------------------

    def split(self, unit: str, sub_unit: int, at: int | None = None) -> None:
        """A new sub-unit takes the upper part of this one's range, from place `at` on (the middle by default).

        The change goes on while the topology runs; `wait_for_change` waits for its end. A topology that has not started
        yet is brought to where it can be changed. After the end there is no state left to move, and the table alone
        changes. Raises UsageError.
        """
        if not self._table_alone(unit, lambda table, new: split(table, sub_unit, new, at), sub_unit):
            self.driver.commands.split(unit, sub_unit, self._now(), at)

    def merge(self, unit: str, sub_unit: int) -> None:
        """This sub-unit's range joins its neighbours', and it leaves. Raises UsageError."""
        if not self._table_alone(unit, lambda table, new: merged(table, sub_unit), sub_unit):
            self.driver.commands.merge(unit, sub_unit, self._now())

    def move(self, unit: str, sub_unit: int) -> None:
        """A new sub-unit takes this one's place. Raises UsageError."""
        if not self._table_alone(unit, lambda table, new: moved(table, sub_unit, new), sub_unit):
            self.driver.commands.move(unit, sub_unit, self._now())

    def scale(self, unit: str, n: int) -> None:
        """So many sub-units with equal shares, in one change. Raises UsageError."""
        self._until_running()
        self.driver.commands.scale(unit, n, self._now())

    def throttle(self, unit: str, rate: float, seconds: float) -> None:
        """So many tuples a second at most, all sub-units together, for so many seconds. Raises UsageError."""
        self._until_running()
        self.driver.commands.throttle(unit, rate, seconds, self._now())

    def _table_alone(self, unit: str, change: Callable[[OutputTable, int], OutputTable], sub_unit: int) -> bool:
        """Bring the run to where it can be changed; if it has ended, change the table. Raises UsageError."""
        self._until_running()
        if self.driver.phase != "ended":
            return False
        self._known(unit)
        core = self.driver.units[unit]
        if core.table is None or sub_unit not in core.table.owners():
            raise UsageError(f"unit {unit!r} has no sub-unit {sub_unit}; it has {self.sub_units(unit)}")
        new = 1 + max(i for each in self.driver.units.values() if each.table for i in each.table.owners())
        try:
            core.table = change(core.table, new)
        except ValueError as error:
            raise UsageError(f"unit {unit!r}: {error}") from None
        return True

    def checkpoint(self) -> int:
        """Begin a checkpoint; its number. Raises UsageError when it cannot be now."""
        return self.driver.checkpoint(self._now())

    def wait_for_change(self, unit: str, most_seconds: float = 60.0) -> None:
        """Run until no change of this unit is on. Raises TopologyFailed when it does not end."""
        until = self._now() + most_seconds
        core = self.driver.units[unit]
        while core.changing and self.driver.phase == "running":
            if not self.step():
                self.wait()
            if self._now() > until:
                raise TopologyFailed(f"{unit}: the change did not end within {most_seconds} s", self.report())

    def _until_running(self) -> None:
        while self.driver.phase in ("building", "wiring", "beginning"):
            if not self.step():
                self.wait()

    # looking ---------------------------------------------------------------------------------------

    def emitted(self, unit: str, stream: str = "") -> list[tuple[Any, Any]]:
        """(key, value) of all tuples that the unit emitted, repeats after a crash included."""
        if unit not in self.plan.chained:
            self._known(unit)
        return list(self._emitted.get((unit, stream), []))

    def landed(self, sink: str) -> list[Any]:
        """Rows that a sink has committed, in the order in which they were written. Raises UsageError for an unknown name."""
        if sink not in self._landed:
            raise UsageError(f"there is no sink {sink!r}; there are: {', '.join(self._landed) or 'none'}")
        return [row for _, row in sorted(self._landed[sink], key=itemgetter(0))]

    def sub_units(self, unit: str) -> list[int]:
        """Incarnations of the unit's sub-units, in ring order where they have one."""
        self._known(unit)
        core = self.driver.units[unit]
        return core.table.owners() if core.table is not None else list(core.subs)

    @property
    def dead_letters(self) -> list[dict[str, Any]]:
        """Records that units with `dead_letter` kept."""
        return self._dead_letters.records

    def report(self) -> Report:
        """The run so far."""
        return make_report(self.driver, "local", how_ended(self.driver), self._now())

    def _known(self, unit: str) -> None:
        if unit not in self.driver.units:
            raise UsageError(self.plan.unknown(unit))

    # faults ----------------------------------------------------------------------------------------

    def kill(self, incarnation: int) -> None:
        """The process dies at once, as by kill -9: what it had in memory and what was not read is gone."""
        process = self._processes.pop(incarnation, None)
        if process is None:
            raise UsageError(f"there is no process {incarnation}; there are: {sorted(self._processes)}")
        process.leave()
        self._exits.append(Exited(incarnation, "killed by the test"))

    def lives(self, incarnation: int) -> bool:
        """Return whether there is a process of this incarnation."""
        return incarnation in self._processes

    def ack_servers(self) -> list[int]:
        """Incarnations of the ack servers."""
        return [i for i, process in self._processes.items() if isinstance(process, LocalAcker)]

    def freeze(self, incarnation: int) -> None:
        """The process stands still, as by SIGSTOP."""
        self._processes[incarnation].frozen = True

    def thaw(self, incarnation: int) -> None:
        """The process goes on."""
        self._processes[incarnation].frozen = False

    def garble(self, incarnation: int, data: bytes, express: bool = False) -> None:
        """A stranger sends bytes to a process."""
        process = self._processes[incarnation]
        (process.fast if express else process.data).links.append(deque([data]))

    def lose_frame(self, incarnation: int) -> bool:
        """The newest frame that waits for this process's data socket is lost; whether there was one."""
        for link in self._processes[incarnation].data.waiting():
            link.pop()
            return True
        return False
