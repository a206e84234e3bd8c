"""The sub-unit that fits a unit."""

from __future__ import annotations

from esault.flow.async_unit import AsyncSubUnit
from esault.flow.bolt_unit import BoltSubUnit
from esault.flow.copy_unit import CopySubUnit
from esault.flow.environment import Environment
from esault.flow.gate_unit import GateSubUnit
from esault.flow.spout_unit import SpoutSubUnit
from esault.flow.sub_unit import SubUnit
from esault.flow.window_unit import WindowSubUnit
from esault.messages.control import Build
from esault.topology.plan import UnitPlan

__all__ = ["sub_unit"]


def sub_unit(build: Build, plan: UnitPlan, environment: Environment) -> SubUnit:
    """The sub-unit that fits the plan of its unit."""
    if plan.kind == "spout":
        kind: type[SubUnit] = SpoutSubUnit
    else:
        plain = BoltSubUnit if plan.window is None else WindowSubUnit
        kind = GateSubUnit if plan.gate else CopySubUnit if plan.copies > 1 else plain
        if plan.concurrency:
            kind = AsyncSubUnit
    return kind(build, plan, environment)
