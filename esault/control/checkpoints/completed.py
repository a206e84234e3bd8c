"""The contents of a complete checkpoint, and the topologies that may go on from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from esault.control.checkpoints.checkpoints import Cut
from esault.control.units.unit import Unit
from esault.counters import counted
from esault.errors import UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit, Handle, Piece
from esault.routing.table import OutputTable
from esault.topology.kept_windows import said_of, why_no_place
from esault.topology.plan import Plan

__all__ = ["check_plan", "completed_of", "renamed", "table_like", "widths", "without_takers"]


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
        width = unit.width
        if unit.planned is not None and unit.plan.kind == "bolt":  # what goes on from here has nothing left to move
            number = {owner: i for i, owner in enumerate(unit.planned.owners())}
            table = tuple((start, number[owner]) for start, owner in unit.planned.snapshot()[1])
            width = len(number)
        made[name] = CompletedUnit(
            kind=unit.plan.kind,
            objects=unit.plan.objects,
            parallelism=unit.parallelism if unit.plan.kind == "spout" and unit.splits is None else width,
            chains=tuple(tuple(chain) for chain in chains.get(name, {}).values()),
            table=table,
            positions={cut.places[part.incarnation]: part.position for part in parts if part.position is not None},
            sources=unit.sources,
            finished=bool(staying) and all(part.finished for part in staying),
            in_flight=tuple(part.in_flight for part in parts if part.in_flight is not None),
            ranges=_written(unit, chains.get(name, {})),
            splits=unit.splits.checkpointed(parts) if unit.splits is not None else {},
            windows=_windows(unit) if unit.plan.kind == "bolt" else (),
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


def _windows(unit: Unit) -> tuple[Any, ...]:
    return said_of(None if unit.plan.window is None else unit.plan.window.kind)


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


def renamed(
    completed: CompletedCheckpoint, plan: Plan, renames: Mapping[str, str] | None = None
) -> CompletedCheckpoint:
    """Return the checkpoint with the names that its topology and units have today, as `Topology(..., moved=)` says.

    `renames` says more, and counts where both say something. Raises UsageError for names that are not there.
    """
    renames = renames or {}
    there = {*completed.units, completed.topology}
    for old, new in renames.items():
        if old not in there and new not in there:  # else it was renamed before
            raise UsageError(
                f"rename {old}={new}: checkpoint {completed.number} has no unit {old!r}; it has: {', '.join(completed.units)}"
            )
        if new not in plan.units and new != plan.name:
            raise UsageError(f"rename {old}={new}: {plan.unknown(new)}")
    if not plan.moved and not renames:
        return completed

    def now(name: str) -> str:  # a unit may have the name of its topology
        return renames[name] if renames.get(name) in plan.units else plan.now(name)

    topology = completed.topology
    topology = plan.name if renames.get(topology) == plan.name else plan.now(topology)

    units = {now(name): unit for name, unit in completed.units.items()}
    if len(units) < len(completed.units):
        names = [now(name) for name in completed.units]
        twice = next(name for name in names if names.count(name) > 1)
        both = " and ".join(repr(name) for name in completed.units if now(name) == twice)
        raise UsageError(
            f"units {both} of checkpoint {completed.number} would both be {twice!r}: name another for one of them"
        )
    handles = tuple(replace(handle, unit=now(handle.unit)) for handle in completed.handles)
    return replace(completed, topology=topology, units=units, handles=handles)


def check_plan(
    completed: CompletedCheckpoint, plan: Plan, parallelism: Mapping[str, int], any_topology: bool = False
) -> None:
    """Check that this topology can go on from the checkpoint: unit names tie state to code. Raises UsageError.

    `any_topology`: it may be one of a topology of another name, since it was chosen by hand.
    """
    anew = "or begin anew without --from-savepoint" if any_topology else "or begin anew with --restart"
    if completed.topology != plan.name and not any_topology:
        raise UsageError(
            f"checkpoint {completed.number} is one of topology {completed.topology!r}, and this is {plan.name!r}: if it was renamed, say "
            f"Topology({plan.name!r}, moved={{{completed.topology!r}: {plan.name!r}}}); else name another place with --state, {anew}"
        )
    for name, unit in completed.units.items():
        reason = _no_taker(completed.number, name, unit, plan)
        if reason is not None:
            raise UsageError(f"{reason}, let its state go with --allow-dropped-state, {anew}")
        wanted = parallelism.get(name, unit.parallelism)
        if unit.kind == "spout" and unit.positions and wanted != unit.parallelism:
            raise UsageError(
                f"spout {name!r} was read by {counted(unit.parallelism, 'sub-unit')} in checkpoint {completed.number}, and their positions hold for "
                f"that number only: it cannot go on with {wanted}; leave its parallelism as it was, {anew}"
            )
    behind = {sink.name: {unit.name, *plan.above(unit.name)} for unit in plan.units.values() for sink in unit.sinks}
    for handle in completed.handles:  # a bolt that was chained had its sinks in the process of a unit before it
        if handle.handle is not None and handle.unit not in behind.get(handle.sink, ()):
            raise UsageError(
                f"checkpoint {completed.number} holds rows that sink {handle.sink!r} behind unit {handle.unit!r} has still to commit, and "
                f"there is no such sink there any more: bring it back, {anew}"
            )


def without_takers(completed: CompletedCheckpoint, plan: Plan) -> tuple[CompletedCheckpoint, list[str]]:
    """Return the checkpoint without the state that no unit of the topology takes, and what that is, a line for each unit."""
    told, units = [], {}
    for name, unit in completed.units.items():
        if _no_taker(completed.number, name, unit, plan) is None:
            units[name] = unit
            continue
        keys, rows = (sum(piece.keys for piece in pieces) for pieces in (sum(unit.chains, ()), unit.in_flight))
        lost = [f"{counted(keys, 'key')} written" if keys else "", f"{rows:,} parts of rows in flight" if rows else ""]
        lost.append("the positions of its source" if unit.positions or unit.splits else "")
        what = ", ".join(filter(None, lost))
        dropped = f"dropped are {what}" if what else "it had no state, so nothing is dropped"
        told.append(f"unit {name!r} of checkpoint {completed.number} has no taker: {dropped}")
    return replace(completed, units=units), told


def _no_taker(number: int, name: str, unit: CompletedUnit, plan: Plan) -> str | None:
    """Return why no unit takes the state of this one, with the remedy; None: one does, or there is none."""
    now = plan.units.get(name)
    if now is None:
        if any(unit.chains) or unit.positions or unit.splits or unit.in_flight:
            return (
                f"checkpoint {number} holds the state of unit {name!r}, and there is no unit of that name any more "
                f"(there are: {', '.join(plan.units)}); if it was renamed, say --rename {name}=ITS_NAME_NOW or Topology({plan.name!r}, "
                f"moved={{{name!r}: 'its_name_now'}})"
            )
        return None
    if now.kind != unit.kind:
        return f"unit {name!r} was a {unit.kind} in checkpoint {number}, and is a {now.kind} now: give one of them another name"
    if unit.kind == "bolt" and any(unit.chains) and now.objects != unit.objects:
        return (
            f"unit {name!r} had one object per {unit.objects.replace('_', ' ')} in checkpoint {number}, and has one per "
            f"{now.objects.replace('_', ' ')} now, so that its state has no place: bring its grouping back"
        )
    if unit.kind == "bolt" and any(unit.chains):
        other = why_no_place(unit.windows, None if now.window is None else now.window.kind)
        if other is not None:
            return (
                f"unit {name!r} of checkpoint {number}: {other}, so that its state has no place: bring its windows back"
            )
    if (unit.positions and now.reads_splits) or (unit.splits and not now.reads_splits):
        before, after = ("as a whole", "in splits") if unit.positions else ("in splits", "as a whole")
        return (
            f"spout {name!r} was read {before} in checkpoint {number}, and is read {after} now, where those positions mean "
            "nothing: bring its source back"
        )
    return None
