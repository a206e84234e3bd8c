"""A run in this very process, in which user code can be stepped through: the engine "local"."""

from __future__ import annotations

import contextlib
import inspect
import signal
from collections.abc import Callable
from dataclasses import replace
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from esault.control.replication.replicas import check_settings
from esault.control.report.late_lines import late_lines
from esault.control.report.timeline import Timeline
from esault.control.run.run_checkpoints import check_sinks
from esault.elasticity.budget import Budget
from esault.elasticity.objective import parsed
from esault.elasticity.scaling import check_policies
from esault.errors import TopologyFailed, UsageError
from esault.flow.operators.user_error import read_cause
from esault.flow.send.end_sinks import end_sinks
from esault.report import Report
from esault.runtime.process.signals import ending_signals, leave_terminal
from esault.runtime.session.chained import chained_of
from esault.runtime.session.open_state import open_state
from esault.runtime.session.plan_check import check_plan
from esault.runtime.session.request import SLOTS, Quiet, Request, TimelineView, View
from esault.runtime.session.session import new_run, open_metrics
from esault.state.run_state import RunState
from esault.topology.builder import Topology
from esault.topology.chaining import with_chained
from esault.topology.landing_places import places
from esault.topology.located import Located
from esault.topology.plan import Plan

if TYPE_CHECKING:
    from esault.runtime.session.metrics_tables import MetricsTables
    from esault.testing.local_runtime import LocalRuntime

__all__ = ["run_local"]


def run_local(request: Request) -> Report:
    """Run it, and return its report. Raises as `execute` does."""
    plan_of = _plan_of(request)
    plan = plan_of()
    check_policies(plan, request.policies)
    parsed(plan, request.settings.objectives)
    check_settings(plan, request.settings)
    check_sinks(plan, request.settings)
    view = request.view or Quiet()
    metrics = open_metrics(request.land_metrics, view.notice)
    state = open_state(request, plan, view.notice)
    chained = chained_of(request, plan, None if state is None else state.kept)
    plan, unchained = with_chained(plan, chained), plan_of
    plan_of = lambda: with_chained(unchained(), chained)
    try:
        check_plan(
            plan,
            request.slots or SLOTS,
            request.parallelism,
            kept=None if state is None else state.kept,
            budget=Budget(request.settings.budget, request.settings.hourly_budget),
        )
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

    run_id = new_run()
    if state is not None:
        state.begin(plan, run_id)
    timeline = Timeline() if metrics is not None or isinstance(view, TimelineView) else None
    if metrics is not None:
        metrics.begin(run_id, plan.name)
    local = LocalRuntime(
        plan_of,
        # Sub-units share the objects of this process: a restart would not begin with new ones.
        settings=replace(request.settings, chaining=False, reload_state=True, restart_strategy="none"),
        parallelism=request.parallelism,
        real=True,
        run=run_id,
        plan=plan,
        state_dir=None if state is None else state.path,
        kept=None if state is None else state.kept,
        last_number=0 if state is None else state.last_number,
        lineage="" if state is None else state.lineage,
        continues=None if state is None else state.continues,
        from_savepoint=state is not None and state.from_savepoint,
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
            except KeyboardInterrupt as interrupt:
                view.notice(_why_interrupted(interrupt, by_signal=signals > 1))
                local.stop_at_once()
                break
            if signals > told:
                told = signals
                view.notice("ending in order: what is in flight is processed (again to stop at once)")
                local.drain()
            _show_notices(local, view)
            now = local.now()
            if request.seconds is not None and now - started >= request.seconds and not local.driver.draining:
                local.drain()
            if now - shown >= 0.1:
                shown = now
                view.update(snapshot(local.driver, now))
                page = timeline.next_page(local.driver, now) if timeline is not None else None
                if metrics is not None and page is not None:
                    metrics.write_page(page)
                if isinstance(view, TimelineView) and page is not None:
                    view.page(page)
        ended_ok = local.driver.failure is None and local.driver.finished_in_order
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _show_notices(local, view)
        end_sinks(plan.sinks, ended_ok, may_repeat(local.driver), local.background)
    view.update(snapshot(local.driver, local.now()))  # a short run has shown nothing yet
    report = local.report()
    for text in late_lines(plan, report):
        view.notice(text)
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


def _why_interrupted(interrupt: KeyboardInterrupt, by_signal: bool) -> str:
    lost = "stopped at once: what was in flight is not processed"
    if by_signal:
        return lost
    *_, last = extract_tb(interrupt.__traceback__)
    return f"{lost}; KeyboardInterrupt was raised in {last.name}, {last.filename}:{last.lineno}"


def _show_notices(local: LocalRuntime, view: View) -> None:
    while local.driver.notices:
        view.notice(local.driver.notices.popleft())


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
