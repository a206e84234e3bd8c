"""Operator chaining: which bolts can run in the process of the unit that feeds them, and the plan in which they do.

A chained bolt costs no process, no frames and no acks of its own: what its sender emits goes through its `process` at once.
It has no sub-units either, so nothing can be kept for it or moved. So only a bolt is chained that has one input by
`shuffle()`, keeps nothing from tuple to tuple, and was asked for nothing that needs a process of its own. It can get processes
of its own while tuples flow (`unchain`).
"""

from __future__ import annotations

import dis
import types
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from esault.topology.bolt import Bolt
from esault.topology.method_code import codes_of_methods, passes_itself
from esault.topology.plan import Edge, Outlet, Plan, UnitPlan
from esault.topology.windowed_spout import WindowedSpout

__all__ = ["chain", "chainable", "described", "unchain", "why_not_chained", "with_chained"]

#: values of attributes that cannot change in place
_FIXED = (str, bytes, int, float, complex, bool, type(None))
#: names by which attributes are changed without being written as such
_INDIRECT = {"setattr", "delattr", "vars", "__dict__", "__setattr__", "__delattr__", "__setstate__"}
_CHANGES = ("STORE_ATTR", "DELETE_ATTR")


def chain(plan: Plan, apart: Collection[str] = ()) -> Plan:
    """Return the plan in which each bolt that can be chained runs in its sender's process; `apart` names units that are not to be."""
    return with_chained(plan, chainable(plan, apart))


def chainable(plan: Plan, apart: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names of the bolts that can be chained, but those that are to stay apart."""
    if any(isinstance(unit.spout, WindowedSpout) for unit in plan.units.values()):
        return ()  # a window passes unit by unit, and each is changed between two of them
    return tuple(name for name, unit in plan.units.items() if name not in apart and why_not_chained(unit) is None)


def with_chained(plan: Plan, names: Collection[str]) -> Plan:
    """Return the plan in which these bolts, of those that can be chained, run in their senders' processes.

    Names of units, streams, steps and sinks stay, so that `process_stream`, errors and row ids say the same.
    """
    heads: dict[str, str] = {}
    for name, unit in plan.units.items():  # senders first
        if name in names:
            sender = unit.inputs[0].source
            heads[name] = heads.get(sender, sender)
    if not heads:
        return plan
    made: dict[str, UnitPlan] = {}
    for name, unit in reversed(list(plan.units.items())):  # receivers first: they are put into their senders
        inputs = tuple(replace(each, source=heads.get(each.source, each.source)) for each in unit.inputs)
        streams = {stream: _chained(outlet, heads, made) for stream, outlet in unit.streams.items()}
        made[name] = replace(unit, inputs=inputs, streams=streams)
    units = {name: made[name] for name in plan.units if name not in heads}
    return replace(plan, units=units, chained=heads)


def _chained(outlet: Outlet, heads: Mapping[str, str], made: Mapping[str, UnitPlan]) -> Outlet:
    edges: list[Edge] = []
    bolts: list[UnitPlan] = []
    for edge in outlet.edges:
        if edge.target in heads:
            bolts.append(made[edge.target])
        else:
            edges.append(edge)
    branches = tuple(_chained(branch, heads, made) for branch in outlet.branches)
    return replace(outlet, edges=tuple(edges), bolts=(*outlet.bolts, *bolts), branches=branches)


def unchain(plan: Plan, name: str) -> Plan:
    """Return the plan in which a chained bolt is a unit of its own, and those chained behind it are chained to it.

    The unit that it was chained to keeps it in its outlets: what of that unit runs by now passes rows on to the new unit from when it
    gets its table.
    """
    head, made = plan.chained[name], plan.unit(name)
    made = replace(made, inputs=(replace(made.inputs[0], source=head),))
    behind = {bolt.name for bolt in made.bolts}
    chained = {other: name if other in behind else to for other, to in plan.chained.items() if other != name}
    units: dict[str, UnitPlan] = {}
    for each, unit in plan.units.items():  # senders first
        units[each] = unit
        if each == head:
            units[name] = made
    return replace(plan, units=units, chained=chained)


def described(plan: Plan, others: bool = True) -> list[str]:
    """Return a line for each bolt: where it runs with chaining, or, with `others`, why in processes of its own."""
    heads = chain(plan).chained
    lines = []
    for name, unit in plan.units.items():
        if name in heads:
            lines.append(f"chained: {name} runs in the process of {heads[name]}")
        elif others and unit.kind == "bolt":
            lines.append(f"not chained: {name} ({why_not_chained(unit) or 'a spout collects windows'})")
    return lines


def why_not_chained(unit: UnitPlan) -> str | None:
    """Return why a unit runs in processes of its own, in a few words; None if it can be chained."""
    if unit.kind == "spout":
        return "it is a spout"
    if not unit.chain:
        return "chain=False"
    if len(unit.inputs) != 1 or not unit.inputs[0].grouping.promises.anywhere:
        return "only a bolt with one input by shuffle() is chained"
    if unit.tracks_replicas:
        return "the topology has replicas"
    if unit.parallelism > 1 or unit.min_parallelism > 1 or unit.max_parallelism is not None:
        return "its parallelism is said"
    for argument in ("concurrency", "buffer", "window", "tick_every", "idle_after", "expire_after", "keys_in_memory"):
        if getattr(unit, argument) is not None:
            return f"it has {argument}"
    if unit.batch:
        return "it is a BatchBolt"
    if unit.timers or unit.watermarks or unit.watermark_targets:
        return "watermarks go through it"
    return _kept(unit.factory)


def _kept(factory: Any) -> str | None:
    """Return what says that the objects keep something, or do something at their end; None if they do not."""
    try:
        fresh = factory()
    except Exception:
        return "its object cannot be made here"
    cls = type(fresh)
    for hook in ("finish", "__getstate__", "__setstate__"):
        if getattr(cls, hook) is not getattr(Bolt, hook):
            return f"{cls.__name__} defines {hook}()"
    for name, value in fresh.__getstate__().items():
        if type(value) not in _FIXED:
            return f"its attribute {name} can change"
    for name, code in codes_of_methods(cls, {"__init__"}, cls.__mro__[cls.__mro__.index(Bolt) :]):
        if _changes(code):
            return f"{name} changes attributes"
        if passes_itself(code):
            return f"{name} passes the bolt itself on, and others could change its attributes"
    return None


def _changes(code: types.CodeType) -> bool:
    if not _INDIRECT.isdisjoint(code.co_names):
        return True
    return any(instruction.opname in _CHANGES for instruction in dis.get_instructions(code))
