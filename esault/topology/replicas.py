"""Active replicas of a bolt: how a unit that was asked for with `replicas=n` stands in the plan.

It becomes n units, its *replicas*, to each of which its senders send every row, and a *merger*, to which the replicas send all that
they emit. The merger passes the first result for each row on, so the function steps, sinks and receivers behind the bolt
stand behind the merger and know nothing of replicas. docs/explanation/replicas.md says what holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from esault.errors import TopologyError
from esault.topology.factory import class_behind
from esault.topology.grouping import BUILT_IN, single
from esault.topology.plan import MOST_REPLICAS, Edge, Input, Outlet, UnitPlan

__all__ = ["check_replicas", "expanded", "has_finish", "merger_name", "replica_name", "width"]

_FOR_REPLICAS = " or ".join(f"{make.__name__}()" for kind, make in BUILT_IN.items() if kind.promises.for_replicas)


def replica_name(unit: str, index: int) -> str:
    """Return the name of a replica, from 0; the first one has the unit's. Users' names have no `~`."""
    return f"{unit}~{index}" if index else unit


def merger_name(unit: str) -> str:
    """Return the name of the merger behind a unit's replicas."""
    return f"{unit}~merger"


def check_replicas(unit: UnitPlan, replicas: object) -> int:
    """`replicas`, if this bolt can have so many. Raises TopologyError."""
    where = f"unit {unit.name!r}: replicas={replicas!r}"
    if isinstance(replicas, bool) or not isinstance(replicas, int) or not 1 <= replicas <= MOST_REPLICAS:
        raise TopologyError(f"{where} must be a whole number from 1, no replicas, to {MOST_REPLICAS}")
    if replicas == 1:
        return 1
    if unit.concurrency is not None:
        raise TopologyError(
            f"{where}, but a bolt with `async def process` has no replicas: their calls would end in other orders; leave "
            "replicas out, or write a plain def"
        )
    if unit.batch:
        raise TopologyError(
            f"{where}, but a BatchBolt has no replicas: what each row brings forth must be known; make it a Bolt"
        )
    for each in unit.inputs:
        if not each.grouping.promises.for_replicas:
            raise TopologyError(
                f"{where}, but its input {each.stream!r} comes by {each.grouping!r}; a bolt with replicas takes {_FOR_REPLICAS}"
            )
    for argument in ("tick_every", "expire_after"):
        if getattr(unit, argument) is not None:
            raise TopologyError(
                f"{where} and {argument}={getattr(unit, argument):g} do not go together: the replicas' clocks would make different "
                f"rows of the same tuples; leave {argument} out, or replicas"
            )
    if unit.timers:
        raise TopologyError(
            f"{where} and on_timer do not go together: the replicas' clocks would make different rows of the same tuples; leave "
            "replicas out, or on_timer"
        )
    if unit.buffer is not None:
        raise TopologyError(
            f"{where} and buffer={unit.buffer} do not go together: each replica would drop other tuples; leave buffer out, or replicas"
        )
    cls = class_behind(unit.factory)
    if unit.objects == "sub-unit" and cls is not None and has_finish(cls):
        raise TopologyError(
            f"{where}, but {cls.__name__} defines finish() and comes by shuffle(): its objects have not seen the same tuples in "
            "each replica; group it by_key(), or leave finish out"
        )
    return replicas


def has_finish(cls: type) -> bool:
    """Return whether a bolt's class puts something out at its end."""
    owner = next(base for base in cls.__mro__ if "finish" in vars(base))
    return not owner.__module__.startswith("esault.topology.")


def expanded(units: Mapping[str, UnitPlan]) -> dict[str, UnitPlan]:
    """Return the units of the plan with replicas and mergers in place of the units that have `replicas`. Raises TopologyError."""
    replicated = [name for name, unit in units.items() if unit.replicas > 1]
    if not replicated:
        return dict(units)
    ids = {
        name: [1 + group * MOST_REPLICAS + index for index in range(units[name].replicas)]
        for group, name in enumerate(replicated)
    }
    made: dict[str, UnitPlan] = {}
    for name, asked in units.items():
        _check_ancestors(units, asked)
        inputs = tuple(replace(i, source=merger_name(i.source)) if i.source in ids else i for i in asked.inputs)
        streams = {stream: _to_replicas(outlet, ids) for stream, outlet in asked.streams.items()}
        unit = replace(asked, inputs=inputs, streams=streams, tracks_replicas=True)
        if name not in ids:
            made[name] = unit
            continue
        taken = [stream for stream, outlet in streams.items() if outlet != Outlet()]
        if not taken:
            raise TopologyError(
                f"unit {name!r}: replicas={unit.replicas}, but nothing takes what it emits, so that replicas are of no use; "
                "give its stream a .bolt(...) or a .sink(...)"
            )
        merger = merger_name(name)
        behind = {
            stream: Outlet(edges=(Edge(merger, taken.index(stream), single()),)) if stream in taken else Outlet()
            for stream in streams
        }
        for index, id in enumerate(ids[name]):
            replica = replica_name(name, index)
            made[replica] = replace(
                unit,
                name=replica,
                streams=behind,
                wants_id=True,
                replica_index=index,
                replica_id=id,
                original=name,
                watermark_targets=frozenset(),
            )
        sources = tuple(Input(name, f"{name}.{stream}" if stream else name, single()) for stream in taken)
        made[merger] = UnitPlan(
            merger,
            "bolt",
            objects="sub-unit",
            inputs=sources,
            streams=streams,
            parallelism=1,
            max_parallelism=1,
            wants_id=unit.wants_id,
            tracks_replicas=True,
            original=name,
            merger=True,
            watermark_targets=asked.watermark_targets,
        )
    return made


def _to_replicas(outlet: Outlet, ids: Mapping[str, list[int]]) -> Outlet:
    """The outlet with an edge to each replica in place of one to their unit."""
    edges: list[Edge] = []
    for edge in outlet.edges:
        if edge.target in ids:
            edges += [
                replace(edge, target=replica_name(edge.target, index), replica_id=id)
                for index, id in enumerate(ids[edge.target])
            ]
        else:
            edges.append(edge)
    return replace(outlet, edges=tuple(edges), branches=tuple(_to_replicas(b, ids) for b in outlet.branches))


def _check_ancestors(units: Mapping[str, UnitPlan], unit: UnitPlan) -> None:
    """Rows are told apart by their ids, which name the way of a row and not the sub-unit that made it."""
    if unit.replicas == 1:
        return
    seen: set[str] = set()
    todo = [each.source for each in unit.inputs]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for each in units[name].inputs:
            if each.grouping.promises.to_several:
                raise TopologyError(
                    f"unit {unit.name!r}: replicas={unit.replicas}, but unit {name!r} before it takes its tuples by {each.grouping!r}, so "
                    "that several sub-units may emit rows of one id, of which only one would be taken; take another grouping "
                    "there, or leave replicas out"
                )
        todo += [each.source for each in units[name].inputs]


def width(unit: UnitPlan, chosen: Mapping[str, int]) -> int:
    """Return the number of sub-units that a unit starts with, where these were chosen by the names that the user gave."""
    if unit.merger:
        return unit.parallelism
    return chosen.get(unit.name, chosen.get(unit.original, unit.parallelism))
