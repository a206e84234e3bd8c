"""Questions of a unit to its replication, and the answers of a unit that has no replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from esault.control.units.sub_unit_record import SubUnitRecord
from esault.control.units.unit_state import Component, Handler
from esault.messages.control import Table

if TYPE_CHECKING:
    from esault.control.units.unit import Unit

__all__ = ["Replication", "Unreplicated"]


class Replication(Protocol):
    """The part that a unit has in the active replicas of one unit of the topology."""

    @property
    def down(self) -> bool:
        """Return whether a sub-unit died and its place is not filled yet, or some of its state is missing."""
        ...

    @property
    def units(self) -> Sequence[Unit]:
        """All active replicas, this one included."""
        ...

    @property
    def busy(self) -> bool:
        """Return whether state is on its way from or to another replica."""
        ...

    def check_change(self) -> None:
        """Refuse a change that cannot be now. Raises UsageError."""
        ...

    def table_for(self, table: Table) -> Table:
        """Return the table as a sender gets it."""
        ...

    def ended_here(self, incarnation: int) -> bool:
        """Return whether this unit had a process ended, to make another one in its place."""
        ...

    def dying(self, record: SubUnitRecord) -> None:
        """Note that a sub-unit is dead; nothing has been done about it yet."""
        ...

    def died(self, incarnation: int) -> None:
        """Do what is left to do about a death, after all that any unit does."""
        ...

    def check(self, now: float) -> None:
        """Look whether the replica has got what it waits for."""
        ...

    def handlers(self) -> Mapping[type, Handler]:
        """Return the handler of each kind of message that it knows."""
        ...


class Unreplicated(Component):
    """A unit that is the only one of its kind."""

    down = False
    busy = False

    def __init__(self, unit: Unit) -> None:
        self.units: Sequence[Unit] = (unit,)

    def check_change(self) -> None:
        """Refuse nothing."""

    def table_for(self, table: Table) -> Table:
        return table

    def ended_here(self, incarnation: int) -> bool:
        return False

    def dying(self, record: SubUnitRecord) -> None:
        """Do nothing."""

    def died(self, incarnation: int) -> None:
        """Do nothing."""

    def check(self, now: float) -> None:
        """Do nothing."""

    def handlers(self) -> Mapping[type, Handler]:
        return {}
