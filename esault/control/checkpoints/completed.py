"""The contents of a complete checkpoint, and the topologies that may go on from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from esault.control.checkpoints.checkpoints import Cut
from esault.control.units.unit import Unit
from esault.errors import UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit, Handle, Piece
from esault.routing.table import OutputTable
from esault.topology.plan import Plan

__all__ = ["check_plan", "completed_of", "renamed", "table_like", "widths"]


def completed_of(
    cut: Cut,
    chains: Mapping[str, Mapping[int, list[Piece]]],
    units: Mapping[str, Unit],
    run: str,
    next_incarnation: int,
    topology: str,
    repeats: bool,
    as_one: Collection[str] = (),
    before: int = 0,
) -> CompletedCheckpoint:
    """The complete checkpoint, with sub-units numbered by part.

    `as_one`: sinks that commit a checkpoint for the whole run, with all that was prepared since checkpoint `before`, which they have committed.
    """
    made, handles = {}, []
    for name, unit in units.items():
        parts = sorted(cut.parts.get(name, []), key=lambda part: part.incarnation)
        staying = [part for part in parts if part.incarnation not in cut.leaving]
        table: tuple[tuple[int, int], ...] = ()
        if unit.table is not None and unit.plan.kind == "bolt":
            number = {owner: i for i, owner in enumerate(unit.table.owners())}
            table = tuple((start, number[owner]) for start, owner in unit.table.snapshot()[1])
        made[name] = CompletedUnit(
            kind=unit.plan.kind,
            objects=unit.plan.objects,
            parallelism=unit.parallelism if unit.plan.kind == "spout" and unit.splits is None else unit.width,
            chains=tuple(tuple(chain) for chain in chains.get(name, {}).values()),
            table=table,
            positions={cut.places[part.incarnation]: part.position for part in parts if part.position is not None},
            sources=unit.sources,
            finished=bool(staying) and all(part.finished for part in staying),
            in_flight=tuple(part.in_flight for part in parts if part.in_flight is not None),
            ranges=_written(unit, chains.get(name, {})),
            splits=unit.splits.checkpointed(parts) if unit.splits is not None else {},
        )
        for part in parts:
            for number_of, by_sink in part.handles.items():
                for sink, handle in by_sink.items():
                    if sink not in as_one:
                        handles.append(Handle(name, sink, number_of, handle))
                    elif number_of > before:  # what was prepared for one that was given up goes with this one
                        handles.append(Handle(name, sink, cut.number, handle))
    return CompletedCheckpoint(
        cut.number,
        run,
        made,
        tuple(handles),
        next_incarnation,
        cut.begun_at,
        cut.completed_at,
        topology,
        repeats,
    )


def _written(unit: Unit, chains: Iterable[int]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The ranges of the sub-units that wrote, where how far time had come is part of their state."""
    if unit.table is None or not unit.plan.keeps_watermark:
        return ()
    return tuple(tuple(unit.table.ranges(incarnation)) for incarnation in chains)


def table_like(pairs: tuple[tuple[int, int], ...], subs: list[int]) -> OutputTable:
    """The table of a checkpoint, for the sub-units of another life."""
    return OutputTable([(start, subs[number]) for start, number in pairs])


def widths(completed: CompletedCheckpoint, plan: Plan) -> dict[str, int]:
    """Return the number of sub-units that each unit had, as far as the topology still allows it."""
    found = {}
    for name, unit in completed.units.items():
        if name in plan.units:
            most = plan.units[name].max_parallelism
            fixed = most is None or (unit.kind == "spout" and not plan.units[name].reads_splits)
            found[name] = unit.parallelism if fixed or most is None else min(unit.parallelism, most)
    return found


def renamed(completed: CompletedCheckpoint, plan: Plan) -> CompletedCheckpoint:
    """Return the checkpoint with the names that its topology and units have today, as `Topology(..., moved=)` says."""
    if not plan.moved:
        return completed
    units = {plan.now(name): unit for name, unit in completed.units.items()}
    handles = tuple(replace(handle, unit=plan.now(handle.unit)) for handle in completed.handles)
    return replace(completed, topology=plan.now(completed.topology), units=units, handles=handles)


def check_plan(completed: CompletedCheckpoint, plan: Plan, parallelism: Mapping[str, int]) -> None:
    """Check that this topology can go on from the checkpoint: unit names tie state to code. Raises UsageError."""
    anew = "or begin anew with --restart"
    if completed.topology != plan.name:
        raise UsageError(
            f"checkpoint {completed.number} is one of topology {completed.topology!r}, and this is {plan.name!r}: if it was renamed, say "
            f"Topology({plan.name!r}, moved={{{completed.topology!r}: {plan.name!r}}}); else name another place with --state, {anew}"
        )
    for name, unit in completed.units.items():
        now = plan.units.get(name)
        if now is None:
            if name in plan.chained and (any(unit.chains) or unit.positions or unit.in_flight):
                raise UsageError(
                    f"checkpoint {completed.number} holds rows or state of unit {name!r}, which has no process of its own in this run: go on "
                    f"without --chaining, {anew}"
                )
            if any(unit.chains) or unit.positions or unit.splits or unit.in_flight:
                raise UsageError(
                    f"checkpoint {completed.number} holds the state of unit {name!r}, and there is no unit of that name any more "
                    f"(there are: {', '.join(plan.units)}); if it was renamed, say Topology({plan.name!r}, moved={{{name!r}: "
                    f"'its_name_now'}}), {anew}"
                )
            continue
        if now.kind != unit.kind:
            raise UsageError(
                f"unit {name!r} was a {unit.kind} in checkpoint {completed.number}, and is a {now.kind} now: give one of them another "
                f"name, {anew}"
            )
        if unit.kind == "bolt" and any(unit.chains) and now.objects != unit.objects:
            raise UsageError(
                f"unit {name!r} had one object per {unit.objects.replace('_', ' ')} in checkpoint {completed.number}, and has one per "
                f"{now.objects.replace('_', ' ')} now, so that its state has no place: bring its grouping back, {anew}"
            )
        if (unit.positions and now.reads_splits) or (unit.splits and not now.reads_splits):
            before, after = ("as a whole", "in splits") if unit.positions else ("in splits", "as a whole")
            raise UsageError(
                f"spout {name!r} was read {before} in checkpoint {completed.number}, and is read {after} now, where those positions mean "
                f"nothing: bring its source back, {anew}"
            )
        wanted = parallelism.get(name, unit.parallelism)
        if unit.kind == "spout" and unit.positions and wanted != unit.parallelism:
            raise UsageError(
                f"spout {name!r} was read by {unit.parallelism} sub-units in checkpoint {completed.number}, and their positions hold for "
                f"that number only: it cannot go on with {wanted}; leave its parallelism as it was, {anew}"
            )
    sinks = {(unit.name, sink.name) for unit in plan.units.values() for sink in unit.sinks}
    for handle in completed.handles:
        if handle.handle is not None and (handle.unit, handle.sink) not in sinks:
            raise UsageError(
                f"checkpoint {completed.number} holds rows that sink {handle.sink!r} behind unit {handle.unit!r} has still to commit, and "
                f"there is no such sink there any more: bring it back, go on with or without --chaining as before, {anew}"
            )
