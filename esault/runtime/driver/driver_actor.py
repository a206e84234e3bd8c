"""The driver's actor: the driver and all units sit in this process; see `esault.runtime`.

It is one module of over 300 lines: Thespian finds the handlers of an actor by name in its class.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from esault.control.report.summary import how_ended, report, snapshot
from esault.control.report.timeline import Page, Timeline
from esault.control.run.cheaper_hosts import CheaperHosts
from esault.control.run.driver import Driver
from esault.control.run.memory_watch import MemoryWatch
from esault.control.run.savepoints import SavepointRequests
from esault.errors import EsaultError, UsageError
from esault.flow.operators.user_error import UserError, is_transient, pack_cause
from esault.messages.control import Exited, NotForked
from esault.messages.probe import HostUsage
from esault.runtime.driver.committer import Committer
from esault.runtime.driver.past_run_file import keep_learnt, recall_learnt
from esault.runtime.driver.policy_thread import PolicyThread
from esault.runtime.driver.run_sinks import RunSinks
from esault.runtime.messages import (
    DrainRun,
    DriverStarted,
    Leave,
    Messages,
    Notice,
    RunEnded,
    RunSpec,
    StartKeeper,
    StartRun,
    StopRun,
)
from esault.runtime.process.console import MarkedStream
from esault.runtime.process.log_records import RecordHandler, log_through
from esault.runtime.process.owner import Owner
from esault.runtime.process.time_slice import GiveWay
from esault.runtime.process.title import set_title
from esault.runtime.process.usage import host_usage
from esault.runtime.process.waker import Waker
from esault.runtime.run_commands import Answer, Answered, Requested, Running
from esault.runtime.worker.probe_loop import ProbeLoop, probe_endpoint
from esault.runtime.worker.supervisor import Supervisor
from esault.state.place import place_of
from esault.state.state_dir import StateDir
from esault.topology.inherited_plan import take_plan
from esault.topology.sink import commits_as_one

if TYPE_CHECKING:
    from esault.runtime.driver.hosts import Hosts

__all__ = ["DriverActor"]

#: seconds between two ticks of the core
TICK = 0.1
#: seconds between two snapshots for the command: views show fewer, and each takes a millisecond of processes beside the data's
SHOW_EVERY = 0.25
#: seconds over which the host's load is taken
HOST_EVERY = 0.5


class DriverActor(Supervisor):
    """Carries messages between the core, the keeper, the sub-units and the command."""

    def __init__(self) -> None:
        super().__init__()
        self._core: Driver | None = None
        #: what was asked for before there was a core: "drain", or "stop"; nothing else asks for it again
        self._end = ""
        self._spec: RunSpec | None = None
        self._command: Any = None
        self._committer: Committer | None = None
        self._sinks: RunSinks | None = None
        self._give_way = GiveWay()
        self._commit_over = Waker()
        self._over = False
        self._period = TICK
        #: requests whose end is still to be told: number -> what gives the last answer, or None
        self._commands: dict[int, Answer] = {}
        #: requests that wait for the end of a checkpoint
        self._later: list[Requested] = []
        self._shown_at = 0.0
        #: when it is tried again to begin, where a sink could not after all went back
        self._begin_at = 0.0
        self._prober: ProbeLoop | None = None
        self._targets: dict[int, tuple[str, float]] = {}
        self._host_usage: Callable[[], HostUsage] | None = None
        self._host_at = 0.0
        #: of a run on several hosts; these have the keepers then
        self._hosts: Hosts | None = None
        self._timeline: Timeline | None = None
        self._memory_watch = MemoryWatch()
        self._cheaper_hosts = CheaperHosts()

    def _now(self) -> float:
        assert self._spec is not None
        return time.monotonic() + self._spec.clock_offset

    def receiveMsg_StartRun(self, message: StartRun, sender: Any) -> None:
        """The command wants this run."""
        spec = self._spec = message.spec
        self._command, self.keeper = sender, message.keeper
        set_title(f"esault {spec.name} driver")
        sys.stdout = MarkedStream(spec.console_fd, "driver")
        sys.stderr = MarkedStream(spec.console_fd, "driver")
        about = {"run": spec.run, "topology": spec.name, "host": spec.host}
        log_through(RecordHandler(spec.console_fd, "driver", about))
        self.send(self._command, DriverStarted(Owner.current()))
        if spec.hosts is None:
            self.take_reports(spec.run_dir)
            self.send(self.keeper, StartKeeper(spec, Owner.current()))
            self._begin_core(spec)
        else:
            from esault.runtime.driver.hosts import Hosts

            try:
                self._hosts = Hosts(spec, spec.hosts, self.waker.wake)
            except UsageError as error:  # there is too much code to send
                self._fail(str(error))
                return
            self.watch(self.waker.fileno(), self._hear_hosts)
        self.tick_after(self._period)

    def _begin_core(self, spec: RunSpec) -> None:
        """Begin the run: the keeper is there."""
        hosts = self._hosts
        plan = spec.laid_out(take_plan(spec.located, spec.params))
        as_one = any(commits_as_one(sink.sink) for sink in plan.sinks)
        self._committer = Committer(as_one, self._commit_over.wake)
        self._sinks = RunSinks(spec, self._committer)
        if as_one:
            self.watch(self._commit_over.fileno(), self._hear_committer)
        kept_in = None
        if spec.state_dir is not None:
            kept_in = StateDir(place_of(spec.state_dir), locked=False, last_number=spec.last_number)
        self._core = Driver(
            plan=plan,
            run=spec.run,
            host=spec.host,
            settings=spec.settings,
            parallelism=spec.parallelism,
            slots=spec.slots,
            policies=spec.policies,
            probes=probe_endpoint(spec.run_dir),
            completed=spec.kept,
            keep=None if kept_in is None else kept_in.keep,
            find=None if kept_in is None else kept_in.newest,
            last_number=spec.last_number,
            ask=PolicyThread().ask,
            resources=None if hosts is None else hosts.cluster,
            lineage=spec.lineage,
            continues=spec.continues,
        )
        if kept_in is not None:
            self._core.run_checkpoints.savepoints = SavepointRequests(kept_in.savepoints)
            if spec.kept is not None and not spec.from_savepoint:
                kept_in.savepoints.go_on_from(spec.kept)
        self._core.scaling.sampler.hosts = self._core.places.hosts
        if spec.learnt is not None:
            recall_learnt(spec.learnt, self._core.scaling, self._core.notices.append)
        self._timeline = Timeline() if spec.timeline else None
        period = self._core.scaling.shortest_period
        if period is not None:
            self._period = min(TICK, period)
        if period is not None and hosts is None:
            self._prober = ProbeLoop(spec.run_dir, self._core.epoch, spec.clock_offset)
            self._prober.start()
        if hosts is None:
            self._host_usage = host_usage(spec.host)
        self._core.start(self._now())
        if self._end:
            self._end_as(self._end)
        self._carry()

    def _end_as(self, asked: str) -> None:
        """End the run, in order or at once; as soon as it has begun, where hosts are still being reached."""
        core = self._core
        if core is None:
            self._end = self._end if self._end == "stop" else asked
            return
        if asked == "stop":
            core.stop_at_once(self._now())
        else:
            core.drain(self._now())
        self._carry()

    def _hear_committer(self) -> None:
        """Take what came of a commit for the whole run."""
        self._commit_over.clear()
        if self._core is not None and self._committer is not None and not self._over:
            over = self._committer.over()
            error = None if over is None else over.exception()
            if error is not None:
                told = str(error), pack_cause(error), is_transient(error)
                self._begin_at = self._now() + self._core.run_checkpoints.commit_failed(*told, self._now())
            elif over is not None:
                self._core.run_checkpoints.committed(self._now())
            self._carry()

    # other hosts -------------------------------------------------------------------------------------

    def _hear_hosts(self) -> None:
        hosts, spec = self._hosts, self._spec
        assert hosts is not None and spec is not None
        self.waker.clear()
        hosts.read_events()
        while hosts.notices:
            self._notice(hosts.notices.popleft())
        if self._core is None:
            self._begin_on(hosts, spec)
            return
        if self._over:
            return
        if not hosts.cluster.hosts and self._core.phase not in ("stopping", "ended"):
            self._core.fail("the last host of the run is lost: it ends here", self._now())
        while hosts.inbox:
            message = hosts.inbox.popleft()
            try:
                self._take(self._core, message, self._now())
            except UsageError as error:  # no host will do for one that must be made
                self._core.fail(str(error), self._now())
        self._carry()

    def _begin_on(self, hosts: Hosts, spec: RunSpec) -> None:
        """Begin the run, if the hosts are there that it waits for."""
        if not self._over and hosts.ready:
            hosts.tell_missing()
            try:
                self._begin_core(spec)
            except UsageError as error:
                self._fail(str(error))

    def _look_at_hosts(self) -> None:
        """At each tick."""
        hosts, now = self._hosts, self._now()
        assert hosts is not None
        if self._core is None:
            late = hosts.late
            if late is not None:
                self._fail(late)
            else:
                assert self._spec is not None
                self._begin_on(hosts, self._spec)
            return
        hosts.evacuation.step(self._core, hosts.cluster, now)
        hosts.share_slots(self._core, now)
        hosts.release_empty()
        hosts.tell_crowded(len(self._core.places.crowded))
        while hosts.notices:
            self._notice(hosts.notices.popleft())
        self._core.scaling.probed(list(hosts.readings))
        hosts.readings.clear()
        self._core.hosts = tuple(hosts.usage[name] for name in hosts.cluster.hosts if name in hosts.usage)
        if self._core.scaling.shortest_period is not None:
            targets = self._core.probe_targets()
            if targets != self._targets:
                self._targets = targets
                hosts.probe(targets, self._core.epoch)

    def receiveMsg_Messages(self, message: Messages, sender: Any) -> None:
        """From a sub-unit or an ack server."""
        assert self._core is not None
        now = self._now()
        for each in self.in_order(message):
            self._take(self._core, each, now)
        self._carry()

    def _take(self, core: Driver, message: Any, now: float) -> None:
        if not core.commands.handle(message) and not core.handle(message, now):
            self._notice(f"the driver got a message that it does not know: {message!r:.200}")

    def receiveMsg_Exited(self, message: Exited, sender: Any) -> None:
        """A process died."""
        self.exited(message)
        if self._core is not None:
            self._core.handle(message, self._now())
            self._carry()

    def receiveMsg_NotForked(self, message: NotForked, sender: Any) -> None:
        """A process could not be made."""
        if self._core is not None:
            self._core.handle(message, self._now())
            self._carry()

    def receiveMsg_DrainRun(self, message: DrainRun, sender: Any) -> None:
        """The command wants an end in order."""
        self._end_as("drain")

    def receiveMsg_StopRun(self, message: StopRun, sender: Any) -> None:
        """The command wants an end at once."""
        self._end_as("stop")

    def receiveMsg_Requested(self, message: Requested, sender: Any) -> None:
        """Another terminal asks for something."""
        core, spec, number = self._core, self._spec, message.number
        if message.command.waits and (self._begins or (core is not None and core.busy)):
            self._later.append(message)
            waits = (
                "until the run has begun" if self._begins else "for the checkpoint that is being taken or gone back to"
            )
            self._answer(number, {"waits": waits}, last=False)
            return
        if core is None or spec is None:
            self._answer(number, {"error": "the run is starting; try again in a moment"})
            return
        try:
            answer = message.command.carry_out(Running(core, spec.policies), self._now())
        except UsageError as error:
            self._answer(number, {"error": str(error)})
        else:
            if answer.then is not None and number:
                self._commands[number] = answer
            self._answer(number, answer.said, last=answer.then is None)
        self._carry()

    @property
    def _begins(self) -> bool:
        return self._core is None or self._core.phase in ("building", "wiring", "beginning")

    def _answer(self, number: int, said: dict[str, Any], last: bool = True) -> None:
        if number:
            self.send(self._command, Answered(number, said, last))
        elif "error" in said:
            self._notice(said["error"])

    def _answer_ended(self) -> None:
        """Answer requests whose change has ended."""
        for number, answer in list(self._commands.items()):
            assert answer.then is not None
            said = answer.then()
            if said is None:
                progress = answer.meanwhile()
                if progress is not None:
                    self._answer(number, progress, last=False)
            else:
                del self._commands[number]
                if self._core is not None:  # who asks next is to see what the answer says
                    self.send(self._command, snapshot(self._core, self._now()))
                self._answer(number, said)

    def engine_failed(self, text: str) -> None:
        """End the run; without a report where what would end it in order has failed, too."""
        if not self._over:
            try:
                self._fail(text)
                return
            except Exception as error:
                text += f"\nand then ending the run: {type(error).__name__}: {error}"
        self._over = True
        self.send(self._command, RunEnded(text))

    def _fail(self, text: str) -> None:
        if self._core is None:
            self._over = True
            if self._hosts is not None:
                self._hosts.leave()
            self.send(self._command, Notice(text))
            self.send(self._command, RunEnded(text))
            return
        self._core.fail(text, self._now())
        self._carry()

    def tick(self) -> None:
        """Measure, and let the core do what is due."""
        if self._over or self._spec is None:
            return
        try:
            self._step()
        except Exception:
            self.tick_after(self._period)  # the run that ends by it needs time to pass
            raise

    def _step(self) -> None:
        if self._hosts is not None:
            self._look_at_hosts()
        if self._core is None:
            self.tick_after(self._period)
            return
        now, give_way = self._now(), self._give_way
        give_way.begin()
        self.mend_reports(now)
        for status in self.reports():
            self._take(self._core, status, now)
        give_way()
        self._measure(self._core, now)
        self._memory_watch.step(self._core, now)
        self._cheaper_hosts.step(self._core, now)
        if self._hosts is not None:
            self._hosts.cluster.charge(now)
        give_way()
        # Before the tick, which may begin the next checkpoint.
        if self._later and not self._core.busy and not self._begins:
            self.receiveMsg_Requested(self._later.pop(0), None)
        self._core.tick(now)
        give_way()
        if self.keeper_died():
            self._core.fail("the keeper's process died (was it killed?): the run ends here", now)
            for incarnation in [i for unit in self._core.units.values() for i in unit.subs]:
                self._core.handle(Exited(incarnation, "it ended with the keeper, which had forked it"), now)
        if now >= self._shown_at:
            self._shown_at = now + SHOW_EVERY - TICK / 2
            seen = snapshot(self._core, now, pause=give_way)
            give_way()
            self.send(self._command, seen)
            give_way()
            if self._timeline is not None:
                self._show(self._timeline.next_page(self._core, now))
                give_way()
        self._carry()
        # A window is looked at when its reports are there, not at the tick after that: what has jumped waits meanwhile.
        look = self._core.scaling.next_look - self._now()
        self.tick_after(look if 0.0 < look < self._period else self._period)

    def _measure(self, core: Driver, now: float) -> None:
        """Take what the prober has found, and tell it whom to probe."""
        if self._host_usage is not None and now >= self._host_at:
            self._host_at = now + HOST_EVERY
            core.hosts = (self._host_usage(),)
        if self._prober is None:
            return
        core.scaling.probed(self._prober.take_readings())
        targets = core.probe_targets()
        if targets != self._targets:
            self._targets = targets
            self._prober.probe(targets, core.epoch)

    def _show(self, page: Page | None) -> None:
        if page is not None:
            self.send(self._command, page)

    def _notice(self, text: str) -> None:
        self.send(self._command, Notice(text))

    def _carry(self) -> None:
        """Deliver what the core has to say."""
        core, spec, committer, sinks = self._core, self._spec, self._committer, self._sinks
        assert core is not None and spec is not None and committer is not None and sinks is not None
        if self._commands:
            self._answer_ended()
        mails: dict[int, list[Any]] = defaultdict(list)

        def collect() -> None:
            while core.outbox:
                address, message = core.outbox.popleft()
                if address == "keeper" and self._hosts is not None:
                    self._hosts.keeper(message)
                elif address == "keeper":
                    self.send(self.keeper, message)
                else:
                    mails[address].append(message)

        collect()
        sinks.commit(core)
        if core.phase == "beginning" and self._now() >= self._begin_at and not committer.busy:
            try:
                sinks.begin(core)
                core.begun(self._now())
            except (EsaultError, UserError) as error:
                now, wait = self._now(), None
                if core.restores.all and is_transient(error):
                    wait = core.restarts.wait("the driver", str(error), now)
                if wait is None:
                    core.fail(str(error), now, pack_cause(error))
                else:
                    self._begin_at = now + wait
            collect()
        for incarnation, messages in mails.items():
            if self._hosts is not None:
                self._hosts.deliver(incarnation, tuple(messages))
            else:
                self.deliver(incarnation, messages)
        while core.notices:
            self._notice(core.notices.popleft())
        if core.phase == "ended" and not self._over:
            self._over = True
            if self._prober is not None:
                self._prober.stop()
            settled = sinks.settle(core)
            ended = how_ended(core)
            assert self._spec is not None
            if self._spec.learnt is not None and core.failure is None:
                keep_learnt(self._spec.learnt, core.scaling, self._notice)
            if settled:  # else one is in a commit, which a later run repeats
                sinks.end(core)
            if self._hosts is not None:
                self._hosts.leave()
            if self._timeline is not None:
                self._show(self._timeline.last(core, self._now()))
            self.send(self._command, snapshot(core, self._now()))  # what is exported ends with the last counts
            self.send(self._command, RunEnded(report(core, "actors", ended, self._now()), core.cause))
            if self._hosts is None:
                self.send(self.keeper, Leave())
