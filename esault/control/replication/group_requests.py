"""Changes that are asked of a unit with active replicas: each is one change of all of them; a move alone is of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from esault.control.units.change_requests import BY_HAND
from esault.control.units.unit import Unit
from esault.errors import UsageError
from esault.routing.table import OutputTable

__all__ = ["GroupRequests"]


class GroupRequests:
    """Requests to one replica; `group` has all of them."""

    def __init__(self, unit: Unit, group: Sequence[Unit]) -> None:
        self._unit = unit
        self._group = group

    def _together(self, owner: int) -> Iterator[tuple[Unit, int]]:
        """Yield each replica with its sub-unit in the owner's place. Raises UsageError."""
        for unit in self._group:
            if unit.table is not None and owner in unit.table.owners():
                place, starts = unit.table.owners().index(owner), _starts(unit.table)
                break
        else:
            self._unit.alone.check_owner(owner)
            return
        original = self._unit.plan.original
        for unit in self._group:
            assert unit.table is not None
            if _starts(unit.table) != starts:
                raise UsageError(
                    f"unit {original!r}: its replicas are divided in different ways, since one of their changes was "
                    f"dropped; give it another number of sub-units: esault scale {original} N"
                )
        yield from [(unit, unit.table.owners()[place]) for unit in self._group if unit.table is not None]

    def split(self, owner: int, now: float, at: int | None = None, reason: str = "", policy: str = BY_HAND) -> int:
        """Split as in any unit, in all replicas."""
        pairs = list(self._together(owner))
        for unit, _ in pairs:
            unit.check_change(unit.width + 1)
        id = self._unit.alone.new_id()
        for unit, each in pairs:
            unit.alone.split(each, now, at, reason, policy, id)
        return id

    def merge(self, owner: int, now: float, reason: str = "", policy: str = BY_HAND) -> int:
        """Merge as in any unit, in all replicas."""
        pairs = list(self._together(owner))
        for unit, _ in pairs:
            unit.check_change(unit.width - 1)
        id = self._unit.alone.new_id()
        for unit, each in pairs:
            unit.alone.merge(each, now, reason, policy, id)
        return id

    def rescale(self, n: int, now: float, reason: str = "", policy: str = BY_HAND) -> int | None:
        """Rescale as in any unit, in all replicas."""
        if n >= 1:
            for unit in self._group:
                unit.check_change(n)
        id = self._unit.alone.new_id()
        begun = [unit.alone.rescale(n, now, reason, policy, id) for unit in self._group]
        return id if id in begun else None

    def adopt(self, after: OutputTable, news: int, now: float, kind: str, reason: str, policy: str) -> int:
        """Adopt a table as any unit does, in all replicas."""
        assert self._unit.table is not None
        tables: list[tuple[Unit, OutputTable]] = []
        own = self._unit.table.owners()
        for unit, _ in self._together(own[0]):
            assert unit.table is not None
            unit.check_change(len(after.owners()))
            named = dict(zip(own, unit.table.owners()))
            version, pairs = after.snapshot()
            tables.append((unit, OutputTable([(start, named.get(owner, owner)) for start, owner in pairs], version)))
        id = self._unit.alone.new_id()
        for unit, table in tables:
            unit.alone.adopt(table, news, now, kind, reason, policy, id)
        return id

    def move(self, owner: int, now: float, reason: str = "", policy: str = BY_HAND, host: str | None = None) -> int:
        """Put a new sub-unit in the place of this one, whichever replica it is of; the other replicas go on."""
        unit = next((u for u in self._group if u.table is not None and owner in u.table.owners()), self._unit)
        return unit.alone.move(owner, now, reason, policy, host)


def _starts(table: OutputTable) -> list[tuple[int, int]]:
    """Return the start of each interval, and the place of its owner among the owners."""
    places = {owner: i for i, owner in enumerate(table.owners())}
    return [(start, places[owner]) for start, owner in table.snapshot()[1]]
