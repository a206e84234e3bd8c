"""The parts of a picture of a run: edges and sinks of each unit, and the share that each sub-unit has of the ring and of the load."""

from __future__ import annotations

from esault.control.run.driver import Driver
from esault.control.units.unit import Unit
from esault.routing.ring import RING
from esault.topology.plan import UnitPlan
from esault.value_class import value_class

__all__ = ["EdgeSnapshot", "SubUnitSnapshot", "edges", "sinks", "sub_units"]


@value_class(frozen=True)
class EdgeSnapshot:
    """An edge from a unit to one that it sends to."""

    target: str
    #: as a user writes it, such as "by_key()"
    grouping: str


@value_class(frozen=True)
class SubUnitSnapshot:
    """One sub-unit at one moment; counts are cumulative over its life."""

    number: int
    #: empty where all is on one machine
    host: str
    #: tuples processed; of a spout, emitted
    tuples: int
    #: tuples in its inbox
    backlog: int
    #: seconds of processing
    busy: float
    #: keys, or other elements, with state
    elements: int
    #: parts of the ring that are its own, first and last, from 0.0 to 1.0; none where a unit takes tuples by no table
    ranges: tuple[tuple[float, float], ...]


def edges(unit: UnitPlan) -> tuple[EdgeSnapshot, ...]:
    """Return the edges that leave a unit, each once."""
    return tuple(dict.fromkeys(EdgeSnapshot(edge.target, repr(edge.grouping)) for edge in unit.edges))


def sinks(unit: UnitPlan) -> tuple[tuple[str, str, str], ...]:
    """Return name and class of each sink in a unit's process, and where its rows go; empty where it does not say."""
    return tuple((each.name, type(each.sink).__name__, each.sink.destination()) for each in unit.sinks)


def sub_units(driver: Driver, unit: Unit) -> tuple[SubUnitSnapshot, ...]:
    """Return the unit's living sub-units, in the order of their numbers."""
    ranges: dict[int, list[tuple[float, float]]] = {}
    if unit.table is not None and unit.plan.keyed:
        for low, high, owner in unit.table.intervals():
            ranges.setdefault(owner, []).append((low / RING, (high + 1) / RING))
    found = []
    for number in sorted(unit.subs):
        last = unit.measurements.last(number)
        counts = last.rows if last is not None else None
        found.append(
            SubUnitSnapshot(
                number=number,
                host=driver.places.hosts.get(number, ""),
                tuples=0 if counts is None else counts.tuples_out if unit.plan.kind == "spout" else counts.tuples_in,
                backlog=0 if counts is None else counts.backlog,
                busy=0.0 if counts is None else counts.busy_seconds,
                elements=0 if counts is None else counts.elements,
                ranges=tuple(ranges.get(number, ())),
            )
        )
    return tuple(found)
