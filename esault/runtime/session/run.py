"""`run`: a topology from a script, a notebook or the command line, to its end and its report.

It is one module of over 300 lines: it is the one way into a run, for scripts, notebooks and the command, on each
engine.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import signal
import stat
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esault.control.replication.replicas import check_settings
from esault.control.report.timeline import Timeline
from esault.control.run.restart_strategy import strategy_of
from esault.control.run.run_checkpoints import check_sinks
from esault.elasticity.scaling import EVERY_UNIT, check_policies
from esault.errors import TopologyFailed, UsageError
from esault.flow.operators.user_error import read_cause
from esault.flow.send.end_sinks import end_sinks
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.report import Report
from esault.runtime.process.signals import ending_signals, leave_terminal
from esault.runtime.session.request import Quiet, Request, View
from esault.runtime.session.session import SLOTS, Session, chaining_of, check_plan, new_run, open_metrics, open_state
from esault.state.run_state import RunState
from esault.topology.builder import Topology
from esault.topology.chaining import chain
from esault.topology.landing_places import places
from esault.topology.locate import loading, locate_function
from esault.topology.located import Located
from esault.topology.plan import Plan

if TYPE_CHECKING:
    from esault.runtime.session.metrics_tables import MetricsTables

__all__ = ["execute", "run", "with_checkpoints"]

ENGINES = ("actors", "local", "spark")


def run(
    topology: Callable[..., Topology],
    params: Mapping[str, Any] | None = None,
    *,
    engine: str = "actors",
    report: str | Path | None = None,
    parallelism: Mapping[str, int] | None = None,
    slots: int | None = None,
    seconds: float | None = None,
    acks: str = "on",
    ackers: int | None = None,
    settings: Settings | None = None,
    checkpoint: float | None = None,
    state: str | Path | None = None,
    resume: bool = False,
    restart: bool = False,
    policy: str | Mapping[str, str] | None = None,
    hosts: str | Path | None = None,
    key: str | Path | None = None,
    master: str | None = None,
    land_metrics: str | Path | None = None,
) -> Report:
    """Run a topology to its end and return its report.

    `topology` is the function, not what it returns: every process imports its file and calls it with `params`. In a
    script this stands under `if __name__ == "__main__":`. `engine="local"` runs in this process, with `breakpoint()`, and
    takes any function. `acks="off"` tracks and replays nothing, and counts losses. `policy` says what scales units while they run: a name
    for all ("auto" is the default, "none" keeps them as they are) or a name by unit. `engine="spark"` runs it on Spark's Structured
    Streaming, `master` naming the cluster (all cores of this machine by default).

    With `checkpoint=S` all state and positions are kept every S seconds in `state` (.esault/NAME), and after a death all go
    back there: state and tables are as if each tuple had been processed once. `resume=True` goes on with a run that did not
    finish, `restart=True` begins anew. `hosts` names a hosts.toml: the sub-units then run on these machines' nodes.

    `land_metrics` is a folder in which the run's own metrics land as tables, for `esault analyze`.

    Raises TopologyFailed (with the report so far), TopologyError, SourceError, SinkError and UsageError.
    """
    if loading() is not None:
        raise UsageError(
            f"run was called while {loading()} was being imported, as every process of a run does; "
            'put it under `if __name__ == "__main__":`'
        )
    if acks not in ("on", "off"):
        raise UsageError(f'acks={acks!r}: it is "on" or "off"')
    settings = settings or Settings()
    if ackers is not None:
        settings = replace(settings, ackers=ackers)
    if acks == "off":
        settings = replace(settings, delivery=Delivery.NONE)
    settings = with_checkpoints(settings, checkpoint)
    place = topology if engine == "local" else locate_function(topology)
    policies = {EVERY_UNIT: policy} if isinstance(policy, str) else policy or {}
    return execute(
        Request(
            place,
            params or {},
            engine,
            settings,
            parallelism or {},
            slots,
            seconds,
            report,
            policies=policies,
            state=state,
            resume=resume,
            restart=restart,
            hosts=hosts,
            key=key,
            master=master,
            land_metrics=land_metrics,
        )
    )


def with_checkpoints(
    settings: Settings, every: float | None, timeout: float | None = None, aligned_timeout: float | None = None
) -> Settings:
    """The settings of a run with checkpoints every so many seconds; None: without. Raises UsageError.

    `timeout` and `aligned_timeout` are seconds, as `checkpoint_timeout` and `aligned_checkpoint_timeout` of `Settings`.
    """
    if timeout is not None or aligned_timeout is not None:
        if every is None:
            raise UsageError("timeouts of checkpoints are about checkpoints: say how often with --checkpoint SECONDS")
        if timeout is not None:
            settings = replace(settings, checkpoint_timeout=timeout)
        if aligned_timeout is not None:
            settings = replace(settings, aligned_checkpoint_timeout=aligned_timeout)
    if not settings.checkpoint_timeout > 0 or not settings.aligned_checkpoint_timeout >= 0:
        raise UsageError(
            f"a checkpoint is given up after {settings.checkpoint_timeout:g} s, unaligned after "
            f"{settings.aligned_checkpoint_timeout:g} s: the first number must be above 0, the second at least 0"
        )
    if every is None:
        return settings
    if not every > 0:
        raise UsageError(f"a checkpoint every {every} seconds: the number must be above 0")
    if settings.delivery is Delivery.NONE:
        raise UsageError("with acks off there are no checkpoints: leave one of them out")
    return replace(settings, delivery=Delivery.EXACTLY_ONCE, checkpoint_every=every)


#: seconds; sub-units report four times in one
SHORTEST_HEARTBEAT = 1.0


def execute(request: Request) -> Report:
    """Run what was asked for; the report is also written when the run fails. Raises as `run` does."""
    if request.engine not in ENGINES:
        known = ", ".join(ENGINES[:-1]) + f" or {ENGINES[-1]}"
        raise UsageError(f"there is no engine {request.engine!r} in this version: it is {known}")
    if request.settings.heartbeat_timeout and not request.settings.heartbeat_timeout >= SHORTEST_HEARTBEAT:
        raise UsageError(
            f"a process is replaced after {request.settings.heartbeat_timeout:g} s without a word: at least "
            f"{SHORTEST_HEARTBEAT:g} s, and more than any tuple takes; 0 for never"
        )
    strategy_of(request.settings.restart_strategy, request.settings.delivery is Delivery.EXACTLY_ONCE)
    if request.seconds is not None and not request.seconds > 0:
        raise UsageError(f"seconds must be above 0, not {request.seconds}")
    if request.master is not None and request.engine != "spark":
        raise UsageError(f"--master {request.master} is for --engine spark")
    if request.land_metrics is not None and request.engine == "spark":
        raise UsageError("--land-metrics is for the engines actors and local: Spark has metrics of its own")
    if request.engine != "actors" and (request.hosts is not None or request.key is not None):
        raise UsageError(f"the engine {request.engine!r} does not run on nodes: leave hosts and key out")
    if request.report is not None:
        _check_writable(Path(request.report))
    try:
        report = {"local": _local, "actors": _actors, "spark": _spark}[request.engine](request)
    except TopologyFailed as error:
        if request.report is not None and isinstance(error.report, Report):
            try:
                error.report.write(request.report)
            except OSError as unwritten:
                raise TopologyFailed(f"{error}\n{_unwritten(request.report, unwritten)}", error.report) from error
        raise
    if request.report is not None:
        try:
            report.write(request.report)
        except OSError as error:
            raise TopologyFailed(f"{_unwritten(request.report, error)}, and says:\n{report}", report) from error
    return report


def _unwritten(path: str | Path, error: OSError) -> str:
    return f"the report of the run, which is over, cannot be written to {path} ({error.strerror or error})"


def _actors(request: Request) -> Report:
    return Session(request).run()


def _spark(request: Request) -> Report:
    from esault.spark.session import require_pyspark

    require_pyspark()
    from esault.spark.engine.run import SparkRun

    assert isinstance(request.topology, Located)
    return SparkRun(
        request.topology,
        request.params,
        new_run(),
        request.settings,
        request.parallelism,
        request.policies,
        request.slots or SLOTS,
        request.seconds,
        request.view or Quiet(),
        request.state,
        request.resume,
        request.restart,
        request.master,
    ).run()


def _local(request: Request) -> Report:
    plan_of = _plan_of(request)
    request = replace(request, settings=chaining_of(request))
    plan = plan_of()
    if request.settings.chaining:
        plan = chain(plan, request.settings.unchained)
    check_policies(plan, request.policies)
    check_settings(plan, request.settings)
    check_sinks(plan, request.settings)
    view = request.view or Quiet()
    metrics = open_metrics(request.land_metrics, view.notice)
    state = open_state(request, plan, view.notice)
    try:
        check_plan(plan, request.slots or SLOTS, request.parallelism, kept=None if state is None else state.kept)
        return _run_local(request, plan, plan_of, state, view, metrics)
    finally:
        if metrics is not None:
            metrics.end(None)
        if state is not None:
            state.close()


def _run_local(
    request: Request,
    plan: Plan,
    plan_of: Callable[[], Plan],
    state: RunState | None,
    view: View,
    metrics: MetricsTables | None,
) -> Report:
    from esault.control.report.summary import may_repeat, snapshot
    from esault.testing.local_runtime import LocalRuntime

    if state is not None:
        state.begin()
    run_id = new_run()
    timeline = None
    if metrics is not None:
        metrics.begin(run_id, plan.name)
        timeline = Timeline()
    local = LocalRuntime(
        plan_of,
        # Sub-units share the objects of this process: a restart would not begin with new ones.
        settings=replace(request.settings, reload_state=True, restart_strategy="none"),
        parallelism=request.parallelism,
        real=True,
        run=run_id,
        plan=plan,
        state_dir=None if state is None else state.path,
        kept=None if state is None else state.kept,
        last_number=0 if state is None else state.last_number,
        lineage="" if state is None else state.lineage,
    )
    ended_ok = False
    signals = told = 0
    shown = started = local.driver.started_at

    def caught(number: int, frame: Any) -> None:
        # The first one ends the run in order, between two steps; the second one also gets user code that never returns.
        nonlocal signals
        if number == signal.SIGHUP:
            leave_terminal()
        signals += 1
        if signals > 1:
            raise KeyboardInterrupt

    previous: dict[int, Any] = {}
    with contextlib.suppress(ValueError):  # not the main thread: the caller has the signals
        previous = {n: signal.signal(n, caught) for n in ending_signals()}
    try:
        while local.driver.phase != "ended":
            try:
                if not local.step():
                    local.wait()
            except KeyboardInterrupt:
                local.stop_at_once()
                break
            if signals > told:
                told = signals
                view.notice("ending in order: what is in flight is processed (again to stop at once)")
                local.drain()
            now = local.now()
            if request.seconds is not None and now - started >= request.seconds and not local.driver.draining:
                local.drain()
            if now - shown >= 0.1:
                shown = now
                view.update(snapshot(local.driver, now))
                page = timeline.take(local.driver, now) if timeline is not None else None
                if metrics is not None and page is not None:
                    metrics.write_page(page)
        ended_ok = local.driver.failure is None and local.driver.finished_in_order
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        end_sinks(plan.sinks, ended_ok, may_repeat(local.driver), local.background)
    report = local.report()
    if metrics is not None and timeline is not None:
        page = timeline.last(local.driver, local.now())
        if page is not None:
            metrics.write_page(page)
        metrics.end(report)
    if state is not None:
        state.ended(report.ended == "drained")
        report = replace(report, checkpoints=replace(report.checkpoints, directory=str(state.path)))
    if local.driver.failure is not None:
        raise TopologyFailed(local.driver.failure, report) from read_cause(local.driver.cause)
    return replace(report, collected=local.collected(), landed=places(plan.sinks))


def _plan_of(request: Request) -> Callable[[], Plan]:
    place, params = request.topology, dict(request.params)
    if isinstance(place, Located):
        return lambda: place.build(params).plan()
    if not callable(place):  # most likely a topology
        raise UsageError("pass the function that returns the topology, without calling it: run(topology)")

    def build() -> Plan:
        made = place(**params)
        if not isinstance(made, Topology):
            name = getattr(place, "__name__", "the function")
            raise UsageError(f"{name} returned a {type(made).__name__}, not a Topology")
        return made.plan()

    try:
        inspect.signature(place).bind(**params)
    except TypeError as error:
        raise UsageError(f"{getattr(place, '__name__', 'the function')}: {error}; see its parameters") from None
    return build


def _check_writable(path: Path) -> None:
    """A report that cannot be written is found before anything starts. Raises UsageError.

    A report replaces what is at its path: that may be a file, never a device, a pipe or a link, nor is any of them opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            kind = path.lstat().st_mode
        except FileNotFoundError:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            path.unlink()
            return
        if not stat.S_ISREG(kind):
            raise UsageError(f"the report cannot be written to {path}: that is no regular file; name another path")
        if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
            raise UsageError(f"the report cannot be written to {path}: it may not be written by this user")
    except OSError as error:
        raise UsageError(f"the report cannot be written to {path}: {error.strerror or error}") from None
