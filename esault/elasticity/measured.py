"""A unit as policies' views are made from it: what a sampler reads. Live units and models of them fit it alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from esault.histogram import Histogram
from esault.messages.change_record import ChangeRecord
from esault.messages.control import Built
from esault.routing.table import OutputTable
from esault.topology.plan import UnitPlan

__all__ = ["MeasuredLatencies", "MeasuredSubUnit", "MeasuredUnit", "latencies"]


class MeasuredSubUnit(Protocol):
    """One sub-unit as the control path knows it."""

    @property
    def incarnation(self) -> int:
        """Its number, never given twice in a run."""
        ...

    @property
    def started_at(self) -> float | None:
        """Return the time at which it began to process, in seconds since the epoch; None before."""
        ...

    @property
    def built(self) -> Built | None:
        """Return what it said when its process stood; None before."""
        ...

    @property
    def leaving(self) -> bool:
        """Return whether it has given its ranges away."""
        ...

    @property
    def stopped(self) -> bool:
        """Return whether it has ended."""
        ...


class MeasuredLatencies(Protocol):
    """The latencies of a unit's tuples."""

    @property
    def chained(self) -> Mapping[str, MeasuredLatencies]:
        """Return those of the bolts that are chained to the unit, by name."""
        ...

    def histogram(self, name: str) -> Histogram:
        """Return `latency` or `end_to_end` of all that has come to its end."""
        ...


class MeasuredUnit(Protocol):
    """One unit and its sub-units."""

    @property
    def name(self) -> str:
        """The unit's name in the topology."""
        ...

    @property
    def plan(self) -> UnitPlan:
        """Return the topology's plan of it."""
        ...

    @property
    def subs(self) -> Mapping[int, MeasuredSubUnit]:
        """Its sub-units by incarnation."""
        ...

    @property
    def table(self) -> OutputTable | None:
        """Return the owners of the parts of the ring; None before the table is built, and for spouts."""
        ...

    @property
    def width(self) -> int:
        """Return the number of sub-units that own a part of the ring."""
        ...

    @property
    def measurements(self) -> MeasuredLatencies:
        """Return what its sub-units have reported, the dead ones included."""
        ...

    @property
    def keyed(self) -> bool:
        """Return whether ranges decide who gets a tuple."""
        ...

    @property
    def all_replicas(self) -> Sequence[MeasuredUnit]:
        """Its active replicas, or itself alone."""
        ...

    @property
    def changing(self) -> bool:
        """Return whether a change is on its way."""
        ...

    @property
    def changes(self) -> Sequence[ChangeRecord]:
        """Changes that have ended, dropped ones included."""
        ...

    @property
    def died_at(self) -> float | None:
        """Return the time at which it lost a sub-unit last, in seconds since the epoch."""
        ...


def latencies(units: Mapping[str, MeasuredUnit], name: str) -> Histogram:
    """Return the latencies of the unit of that name; of the empty name those of all tuples, end to end."""
    if name:
        return units[name].measurements.histogram("latency")
    total = Histogram()
    for unit in units.values():
        # A tuple comes to its end in a chained bolt, where there is one.
        for each in (unit.measurements, *unit.measurements.chained.values()):
            total.merge(each.histogram("end_to_end"))
    return total
