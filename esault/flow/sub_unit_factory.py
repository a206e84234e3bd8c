"""The sub-unit that fits a unit."""

from __future__ import annotations

from esault.flow.replica.merger import MergerSubUnit
from esault.flow.replica.replica_sub_unit import ReplicaSubUnit
from esault.flow.worker.async_unit import AsyncSubUnit
from esault.flow.worker.bolt_unit import BoltSubUnit
from esault.flow.worker.environment import Environment
from esault.flow.worker.split_unit import SplitSubUnit
from esault.flow.worker.spout_unit import SpoutSubUnit
from esault.flow.worker.sub_unit import SubUnit
from esault.flow.worker.timer_unit import TimerSubUnit
from esault.flow.worker.window_unit import WindowSubUnit
from esault.messages.control import Build
from esault.topology.plan import UnitPlan
from esault.topology.split_source import SplitSource

__all__ = ["sub_unit"]


def sub_unit(build: Build, plan: UnitPlan, environment: Environment) -> SubUnit:
    """The sub-unit that fits the plan of its unit."""
    if plan.kind == "spout":
        kind: type[SubUnit] = SplitSubUnit if isinstance(plan.spout, SplitSource) else SpoutSubUnit
    else:
        plain = BoltSubUnit if plan.window is None else WindowSubUnit
        if plan.timers or (plan.window is not None and plan.window.clocked):
            plain = TimerSubUnit
        kind = MergerSubUnit if plan.merger else ReplicaSubUnit if plan.replicas > 1 else plain
        if plan.concurrency:
            kind = AsyncSubUnit
    return kind(build, plan, environment)
