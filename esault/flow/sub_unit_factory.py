"""The sub-unit that fits a unit."""

from __future__ import annotations

from esault.flow.replica.merger import MergerSubUnit
from esault.flow.replica.replica_copies import ReplicaCopies
from esault.flow.worker.async_processing import AsyncProcessing
from esault.flow.worker.batch_processing import BatchProcessing
from esault.flow.worker.bolt_unit import BoltParts, BoltSubUnit
from esault.flow.worker.clock_timers import ClockTimers
from esault.flow.worker.environment import Environment
from esault.flow.worker.source_splits import SourceSplits
from esault.flow.worker.spout_unit import SpoutSubUnit
from esault.flow.worker.sub_unit import SubUnit
from esault.flow.worker.window_closing import WindowClosing
from esault.messages.control import Build
from esault.topology.plan import UnitPlan
from esault.topology.split_source import SplitSource

__all__ = ["sub_unit"]


def sub_unit(build: Build, plan: UnitPlan, environment: Environment) -> SubUnit:
    """The sub-unit that fits the plan of its unit, with the parts that it needs."""
    if plan.kind == "spout":
        splits = SourceSplits if isinstance(plan.spout, SplitSource) else None
        return SpoutSubUnit(build, plan, environment, splits)
    if plan.merger:
        return MergerSubUnit(build, plan, environment)
    if plan.concurrency:
        parts = BoltParts(lambda bolt: AsyncProcessing(bolt, environment))
    elif plan.replicas > 1:
        parts = BoltParts(BatchProcessing, replica=ReplicaCopies)
    else:
        timers = plan.timers or (plan.window is not None and plan.window.clocked)
        closing = WindowClosing if timers or plan.window is not None else None
        parts = BoltParts(BatchProcessing, closing, ClockTimers if timers else None)
    return BoltSubUnit(build, plan, environment, parts)
