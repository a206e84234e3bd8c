"""One run from the command's side: checks, start, watching, signals, the end.

It is one module of over 300 lines: what is opened here is closed here, in the opposite order, whatever fails between.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from esault.control.checkpoints.completed import widths
from esault.control.replication.replicas import check_settings
from esault.control.report.late_lines import late_lines
from esault.control.report.summary import Snapshot
from esault.control.report.timeline import Page
from esault.control.run.run_checkpoints import check_sinks
from esault.elasticity.budget import Budget
from esault.elasticity.objective import parsed
from esault.elasticity.policy import DEFAULT
from esault.elasticity.scaling import EVERY_UNIT, check_policies
from esault.errors import CheckpointError, TopologyFailed, UsageError
from esault.flow.operators.user_error import read_cause
from esault.messages.settings import Settings
from esault.payload.class_names import as_script
from esault.report import Report
from esault.runtime.actors import system
from esault.runtime.messages import (
    DrainRun,
    DriverStarted,
    HostsSpec,
    Notice,
    RunEnded,
    RunSpec,
    StartRun,
    StopRun,
)
from esault.runtime.process.console import ConsoleReader
from esault.runtime.process.log_output import deliver
from esault.runtime.process.log_records import RecordReader
from esault.runtime.process.owner import Owner
from esault.runtime.process.run_dir import RunDir
from esault.runtime.process.signals import ending_signals, leave_terminal
from esault.runtime.run_commands import Answered
from esault.runtime.session.chained import chained_of
from esault.runtime.session.control_options import ControlOptions
from esault.runtime.session.control_server import ControlServer
from esault.runtime.session.control_socket import ControlSocket
from esault.runtime.session.dead_letters import dead_letter_paths
from esault.runtime.session.first_widths import with_readers
from esault.runtime.session.idle_watch import IdleWatch
from esault.runtime.session.learned import learnt_by_policies, with_learned
from esault.runtime.session.open_state import open_state
from esault.runtime.session.plan_check import check_plan
from esault.runtime.session.request import SLOTS, LogView, Quiet, Request, TimelineView
from esault.topology.chaining import with_chained
from esault.topology.inherited_plan import leave_plan
from esault.topology.landing_places import places
from esault.topology.located import Located
from esault.topology.plan import Plan
from esault.topology.replicas import width

if TYPE_CHECKING:
    from esault.runtime.session.metrics_tables import MetricsTables
    from esault.state.run_state import RunState

__all__ = ["Session", "new_run", "open_metrics"]


#: seconds between two looks whether the run's folder is there
LOOK_EVERY = 1.0
#: modules of the run's first actors
_DRIVER, _KEEPER = "esault.runtime.driver.driver_actor", "esault.runtime.worker.keeper"
#: what is said where the actor system died under a run
FIRST_DIED = (
    "the run's first process died (was it killed?): the run ends here; one with checkpoints goes on with --resume"
)


def new_run() -> str:
    """An identity of a run: readable, unique over all runs."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"


def open_metrics(folder: str | Path | None, notice: Callable[[str], None]) -> MetricsTables | None:
    """The run's own tables, if they are to land. Raises SinkError, UsageError."""
    if folder is None:
        return None
    from esault.runtime.session.metrics_tables import MetricsTables  # few runs have them, and they bring sinks

    tables = MetricsTables(folder, notice)
    tables.check()
    return tables


class Session:
    """A run on actors. `run` blocks until it has ended and gives its report."""

    def __init__(self, request: Request, idle: IdleWatch | None = None) -> None:
        """Checks everything that can be checked; nothing is started. `idle` says when it is to pause by itself. Raises EsaultError."""
        self._idle_watch = idle
        #: it was paused since it had nothing to do, and is not to end
        self.idle = False
        self.last_snapshot: Snapshot | None = None
        located = request.topology
        assert isinstance(located, Located)
        self.plan = located.build(dict(request.params)).plan()
        request = with_learned(request, self.plan)
        self._view = request.view or Quiet()
        self._learnt = learnt_by_policies(request.learn, self.plan.name)
        self._parallelism = dict(request.parallelism)
        self._settings: Settings = request.settings
        check_settings(self.plan, self._settings)
        check_sinks(self.plan, self._settings)
        self._metrics = open_metrics(request.land_metrics, self._view.notice)
        self._state = open_state(request, self.plan, self._view.notice)
        self._hosts: HostsSpec | None = None
        self._chained = chained_of(request, self.plan, None if self._state is None else self._state.kept)
        self.plan = with_chained(self.plan, self._chained)
        try:
            slots = request.slots
            if request.hosts is not None:
                from esault.runtime.session.resolve_hosts import check_params, reach

                check_params(request.params)
                if request.priority is not None:
                    slots = sum(width(u, self._widened()) for u in self.plan.units.values()) + self._settings.ackers
                priced = bool(self._settings.hourly_budget)
                state, tell = self._state, self._view.notice
                self._hosts = reach(self.plan, request.hosts, request.key, slots, state, tell, priced, request.priority)
                slots = sum(each for _, each in self._hosts.nodes)
            elif request.key is not None and request.control is None:
                raise UsageError("--key is about several hosts: name them with --hosts hosts.toml")
            slots = slots or SLOTS
            self._check(slots, request.policies)
            for name, readers in with_readers(request, self.plan).items():
                self._parallelism[name] = readers
                self._view.notice(
                    f"{name}: {readers} readers share the files, since all of the work is theirs; "
                    f"--parallelism {name}=1 leaves it at one"
                )
            self._control = ControlOptions(request, self._hosts)
        except BaseException:
            self._let_go()
            raise
        self._located = located
        self._params = dict(request.params)
        self._slots = slots
        self._seconds = request.seconds
        self._signals = 0
        self._cause = b""
        self._control_server: ControlServer | None = None
        self._run_dir: RunDir | None = None

    @property
    def hosts(self) -> HostsSpec | None:
        """The hosts that it runs on; None: this one."""
        return self._hosts

    def _check(self, slots: int, policies: Mapping[str, str]) -> None:
        kept = self._state.kept if self._state is not None else None
        widened = self._widened()
        budget = Budget(self._settings.budget, self._settings.hourly_budget)
        prices = () if self._hosts is None else self._hosts.prices
        remedy = "" if self._hosts is None else "start more nodes"
        check_plan(self.plan, slots, widened, remedy, kept, budget, prices)
        self._policies = {EVERY_UNIT: DEFAULT, **policies}
        check_policies(self.plan, self._policies)
        parsed(self.plan, self._settings.objectives)

    def _widened(self) -> dict[str, int]:
        kept = self._state.kept if self._state is not None else None
        return {**(widths(kept, self.plan) if kept is not None else {}), **self._parallelism}

    def close(self) -> None:
        """Let go of what was opened, where it is not run after all."""
        self._control.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._state is not None:
            self._state.close()

    def run(self, on_started: Callable[[RunSpec], None] | None = None) -> Report:
        """Run to the end. Raises TopologyFailed (with the report if there is one), EsaultError."""
        previous = self._catch_signals()  # before anything is there that an early one would leave behind
        try:
            return self._run(on_started)
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            self._let_go()

    def _run(self, on_started: Callable[[RunSpec], None] | None) -> Report:
        owner = Owner.current()
        state = self._state
        run = new_run()
        if state is not None:
            state.begin(self.plan, run)
        held = self._run_dir = RunDir(owner, self.plan.name, run)
        run_dir = held.path
        console = ConsoleReader(RecordReader(self._view.line, self._logged))
        spec = RunSpec(
            located=self._located,
            params=self._params,
            run=run,
            name=self.plan.name,
            run_dir=str(run_dir),
            settings=self._settings,
            owner=owner,
            console_fd=console.write_fd,
            host=socket.gethostname(),
            parallelism=self._parallelism,
            slots=self._slots,
            policies=self._policies,
            clock_offset=time.time() - time.monotonic(),
            stdin_fd=_spare_stdin(),
            state_dir=None if state is None else str(state.path.absolute()),
            kept=None if state is None else state.kept,
            last_number=0 if state is None else state.last_number,
            from_savepoint=state is not None and state.from_savepoint,
            lineage="" if state is None else state.lineage,
            continues=None if state is None else state.continues,
            hosts=self._hosts,
            chained=self._chained,
            timeline=self._metrics is not None or isinstance(self._view, TimelineView),
            learnt=self._learnt,
        )
        try:
            leave_plan(self._located, self._params, self.plan)
            handle = system.start(
                secrets.token_bytes(32),
                title=f"esault {self.plan.name}",
                scratch=run_dir,
                modules=(_DRIVER,) if self._hosts is not None else (_DRIVER, _KEEPER),
            )
            patience = 0.5  # where something is wrong, who does not go by himself is not waited for
            try:
                from esault.runtime.driver.driver_actor import DriverActor
                from esault.runtime.worker.keeper import Keeper

                keeper = handle.create(Keeper) if self._hosts is None else None
                driver = handle.create(DriverActor)
                handle.tell(driver, StartRun(spec, keeper))
                console.start()
                if on_started is not None:
                    on_started(spec)
                report = self._recorded(handle, driver, spec)
                report = replace(
                    report,
                    collected=_collected(self.plan, str(run_dir), self._located.path),
                    landed=places(self.plan.sinks),
                )
                for text in late_lines(self.plan, report):
                    self._view.notice(text)
                patience = 2.0
                if state is not None:
                    self._mark_ended(state, report)
                    report = replace(report, checkpoints=replace(report.checkpoints, directory=str(state.path)))
            finally:
                handle.shutdown(patience)
        finally:
            console.close()
            if spec.stdin_fd is not None:
                os.close(spec.stdin_fd)
            held.close()
        if report.failure is not None:
            with as_script(self._located.path):  # who catches it knows it by the script's own class
                cause = read_cause(self._cause)
            raise TopologyFailed(report.failure, report) from cause
        return report

    def _logged(self, record: logging.LogRecord) -> None:
        told = isinstance(self._view, LogView) and self._view.log(record)
        deliver(record, fallback=not told)

    def _mark_ended(self, state: RunState, report: Report) -> None:
        try:
            state.ended(report.ended == "drained")
        except CheckpointError as error:  # all is done: only the next command is concerned
            self._view.notice(str(error))

    def _catch_signals(self) -> dict[int, Any]:
        def caught(number: int, frame: FrameType | None) -> None:
            if number == signal.SIGHUP:
                leave_terminal()
            self._signals += 1

        try:
            return {n: signal.signal(n, caught) for n in ending_signals()}
        except ValueError:  # not the main thread: the caller has the signals
            return {}

    def _recorded(self, handle: system.ActorSystemHandle, driver: Any, spec: RunSpec) -> Report:
        """Watch the run, with its metrics landing."""
        if self._metrics is None:
            return self._served(handle, driver, spec)
        self._metrics.begin(spec.run, spec.name)
        report: Report | None = None
        try:
            report = self._served(handle, driver, spec)
            return report
        finally:
            self._metrics.end(report)

    def _served(self, handle: system.ActorSystemHandle, driver: Any, spec: RunSpec) -> Report:
        """Watch the run, with its control socket open to other terminals."""
        control_socket = ControlSocket(Path(spec.run_dir))
        self._control_server = ControlServer(
            control_socket,
            spec.name,
            spec.run,
            lambda message: handle.tell(driver, message),
            self._state,
            dead_letter_paths(self.plan),
            self._control.audit,
        )
        control_socket.start()
        self._control.serve(control_socket, self._view.notice)
        how = "failed"
        try:
            report = self._watch(handle, driver)
            how = report.ended
            self.idle = self.idle and not self._control_server.leaving
            return report
        finally:
            self._control_server.ended(how)
            self._control.close()

    def _watch(self, handle: system.ActorSystemHandle, driver: Any) -> Report:
        told = 0
        # a driver that has not begun knows no end in order: it hears of it once all run
        begun = waits = False
        until, timed = None, self._seconds is not None
        driving: Owner | None = None
        look_at = 0.0
        while True:
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + LOOK_EVERY
                self._mend_folder()
            if self._control_server is not None:
                self._control_server.serve()
            for message in _messages(_heard(handle)):
                if isinstance(message, Answered) and self._control_server is not None:
                    self._control_server.answered(message)
                if isinstance(message, RunEnded):
                    self._cause = message.cause
                    if isinstance(message.report, Report):
                        return message.report
                    raise TopologyFailed(str(message.report))
                if isinstance(message, DriverStarted):
                    driving = message.process
                elif isinstance(message, Page):
                    self._show_page(message)
                elif isinstance(message, Notice):
                    self._view.notice(message.text)
                elif isinstance(message, Snapshot):
                    self._view.update(message)
                    self.last_snapshot = message
                    if self._pauses(message):
                        handle.tell(driver, DrainRun())
                    if self._control_server is not None:
                        self._control_server.seen(message)
                    begun = begun or message.phase == "running" or message.unforked > 0
                    if timed and until is None and message.phase == "running":
                        until = time.monotonic() + (self._seconds or 0.0)
            if until is not None and time.monotonic() >= until:
                until, timed, self.idle = None, False, False
                handle.tell(driver, DrainRun())
            if self._signals > told:
                told += 1
                self.idle = False
                if told == 1:
                    self._view.notice("ending in order: what is in flight is processed (again to stop at once)")
                    waits = True
                elif told == 2:
                    handle.tell(driver, StopRun())
                else:
                    raise TopologyFailed(
                        "ended at once, as asked a third time: what was not committed is left as it was"
                    )
            if waits and begun:
                waits = False
                handle.tell(driver, DrainRun())
            if not handle.alive():
                raise TopologyFailed(FIRST_DIED)
            if driving is not None and not driving.alive():
                raise TopologyFailed(FIRST_DIED.replace("run's first", "driver's"))

    def _pauses(self, snapshot: Snapshot) -> bool:
        """Return whether the run is to pause now since it has nothing to do."""
        if self._idle_watch is None or self.idle or not self._idle_watch.seen(snapshot, time.monotonic()):
            return False
        self.idle = True
        return True

    def _show_page(self, page: Page) -> None:
        if self._metrics is not None:
            self._metrics.write_page(page)
        if isinstance(self._view, TimelineView):
            self._view.page(page)

    def _mend_folder(self) -> None:
        """Make the run's folder again where another program has removed it. Raises TopologyFailed where that will not do."""
        folder = self._run_dir
        if folder is None or not folder.lost:
            return
        lost = f"the run's folder {folder.path} was removed by another program"
        collecting = [sink.name for sink in self.plan.sinks if sink.sink.collects]
        if collecting:
            raise TopologyFailed(
                f"{lost}, and with it the rows that {', '.join(collecting)} (Collect) had: the run ends here; keep cleaners of "
                "temporary files away from it, or let rows land in a file"
            )
        try:
            folder.make_again()
        except OSError as error:
            raise TopologyFailed(f"{lost}, and cannot be made again: {error.strerror or error}") from None
        self._view.notice(f"{lost}: made again")


def _spare_stdin() -> int | None:
    """Another descriptor of the command's standard input: actors are born with an empty one."""
    try:
        return os.dup(0)
    except OSError:
        return None


def _heard(handle: system.ActorSystemHandle) -> Any:
    """Return what was said to the command; None: nothing. Raises TopologyFailed: a run under way has failed, it was not used wrongly."""
    try:
        return handle.listen(0.05)
    except system.SystemDied:
        raise TopologyFailed(FIRST_DIED) from None


def _messages(received: Any) -> list[Any]:
    if received is None:
        return []
    from esault.runtime.actors.actor import unpack

    return unpack(received)


def _collected(plan: Plan, run_dir: str, path: str | None) -> dict[str, list[Any]]:
    with as_script(path):
        return {s.name: s.sink.collected_rows(run_dir, s.name) for s in plan.sinks if s.sink.collects}
