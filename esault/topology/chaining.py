"""Operator chaining: which bolts can run in the process of the unit that feeds them, and the plan in which they do.

A chained bolt costs no process, no frames and no acks of its own: what its sender emits goes through its `process` at once.
It has no sub-units either, so nothing can be kept for it, moved or scaled. So only a bolt is chained that has one input by
`shuffle()`, keeps nothing from tuple to tuple, and was asked for nothing that needs a process of its own.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from esault.topology.bolt import Bolt
from esault.topology.grouping import Shuffle
from esault.topology.plan import Edge, Outlet, Plan, UnitPlan

__all__ = ["chain", "described", "why_not_chained"]

#: values of attributes that cannot change in place
_FIXED = (str, bytes, int, float, complex, bool, type(None))
#: names by which attributes are changed without being written as such
_INDIRECT = {"setattr", "delattr", "vars", "__dict__", "__setattr__", "__delattr__", "__setstate__"}
_CHANGES = ("STORE_ATTR", "DELETE_ATTR")


def chain(plan: Plan, apart: Collection[str] = ()) -> Plan:
    """Return the plan in which each bolt that can be chained runs in its sender's process; `apart` names units that are not to be.

    Names of units, streams, steps and sinks stay, so that `process_stream`, errors and row ids say the same.
    """
    heads: dict[str, str] = {}
    for name, unit in plan.units.items():  # senders first
        if name not in apart and why_not_chained(unit) is None:
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


def described(plan: Plan) -> list[str]:
    """Return a line for each bolt: where it runs with chaining, or why in processes of its own."""
    heads = chain(plan).chained
    return [
        f"chained: {name} runs in the process of {heads[name]}"
        if name in heads
        else f"not chained: {name} ({why_not_chained(unit)})"
        for name, unit in plan.units.items()
        if unit.kind == "bolt"
    ]


def why_not_chained(unit: UnitPlan) -> str | None:
    """Return why a unit runs in processes of its own, in a few words; None if it can be chained."""
    if unit.kind == "spout":
        return "it is a spout"
    if not unit.chain:
        return "chain=False"
    if len(unit.inputs) != 1 or type(unit.inputs[0].grouping) is not Shuffle:
        return "only a bolt with one input by shuffle() is chained"
    if unit.tracks_replicas:
        return "the topology has replicas"
    if unit.parallelism > 1 or unit.min_parallelism > 1 or unit.max_parallelism is not None:
        return "its parallelism is said"
    for argument in ("concurrency", "buffer", "window", "tick_every", "idle_after", "expire_after"):
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
    for base in cls.__mro__[: cls.__mro__.index(Bolt)]:
        for name, member in vars(base).items():
            if name != "__init__" and any(map(_changes, _codes(member))):
                return f"{base.__name__}.{name} changes attributes"
    return None


def _codes(member: Any) -> Iterator[types.CodeType]:
    if isinstance(member, property):
        for each in (member.fget, member.fset, member.fdel):
            yield from _codes(each)
        return
    member = getattr(member, "__func__", member)
    while hasattr(member, "__wrapped__"):
        if (code := getattr(member, "__code__", None)) is not None:
            yield from _nested(code)
        member = member.__wrapped__
    code = getattr(member, "__code__", None)
    if code is not None:
        yield from _nested(code)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _changes(code: types.CodeType) -> bool:
    import dis  # few runs chain, and it takes its time

    if not _INDIRECT.isdisjoint(code.co_names):
        return True
    return any(instruction.opname in _CHANGES for instruction in dis.get_instructions(code))
