"""The targets of a unit: each of its sub-units registers with them, and gets their tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from esault.control.units.signals import MayTakeOver
from esault.control.units.sub_unit_record import SubUnitRecord
from esault.control.units.unit_state import Component, Handler, UnitState
from esault.messages.control import Connect, Register, Registered, SenderSwitched, Switched, Table, TableFor, Unregister

__all__ = ["Targets"]


class Targets(Component):
    """The units that this unit sends to."""

    def __init__(self, state: UnitState) -> None:
        self._state = state
        #: all first sub-units have the first tables
        self.wired = False

    def handlers(self) -> Mapping[type, Handler]:
        return {Registered: self._on_registered, TableFor: self._on_table_for, Switched: self._on_switched}

    def register(self, incarnations: Iterable[int]) -> None:
        """Make sub-units known to the units they send to."""
        incarnations = tuple(incarnations)
        for target in self._state.targets:
            self._state.tell_unit(target, Register(self._state.name, incarnations))

    def add(self, target: str) -> None:
        """Send to one more unit: who has been built registers there, and others when they have been."""
        state = self._state
        state.targets = (*state.targets, target)
        for record in state.subs.values():
            if not record.connected:
                record.missing.add(target)
        built = tuple(r.incarnation for r in state.subs.values() if r.built is not None)
        if built:
            state.tell_unit(target, Register(state.name, built))

    def unregister(self, incarnation: int, last: bool) -> None:
        """Tell them that a sub-unit is dead; `last`: it has no successor."""
        for target in self._state.targets:
            self._state.tell_unit(target, Unregister(incarnation, last))

    def know(self, record: SubUnitRecord) -> bool:
        """Return whether all of them know this sub-unit, and it has their tables."""
        return not self._state.targets or (record.connected and not record.switching)

    def _on_registered(self, message: Registered, now: float) -> None:
        record = self._state.subs.get(message.incarnation)
        if record is not None:
            record.missing.discard(message.target)
            self._take_table(record, message.table)

    def _on_table_for(self, message: TableFor, now: float) -> None:
        record = self._state.subs.get(message.incarnation)
        if record is not None:
            self._take_table(record, message.table)

    def _take_table(self, record: SubUnitRecord, table: Table) -> None:
        if record.connected:
            record.switching[table.target] = table.version
            self._state.tell(record.incarnation, table)
            return
        record.tables.append(table)
        if not record.missing:
            record.connected = True
            record.switching = {t.target: t.version for t in record.tables}
            self._state.tell(record.incarnation, Connect(tuple(record.tables)))
            record.tables = []

    def _on_switched(self, message: Switched, now: float) -> None:
        record = self._state.subs.get(message.incarnation)
        if record is None:
            return
        if message.version >= record.switching.get(message.target, 0):
            record.switching.pop(message.target, None)
        self._state.tell_unit(message.target, SenderSwitched(message.incarnation, message.version))
        self.check_wired()
        self._state.say(MayTakeOver(record), now)

    def check_wired(self) -> None:
        """Say so once all have their first tables."""
        if self.wired or self._state.table is None:
            return
        if all(self.know(record) for record in self._state.subs.values()):
            self.wired = True
            self._state.event("wired")
