"""What is wished of a unit with copies is done to all of them; a move alone is of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from esault.control.units.elastic_unit import ElasticUnit
from esault.errors import UsageError
from esault.routing.table import OutputTable

__all__ = ["GroupedUnit", "MergerUnit"]


class MergerUnit(ElasticUnit):
    """The gate behind the copies: what it remembers does not move."""

    def check_change(self, after: int) -> None:
        raise UsageError(f"unit {self.name!r} is the gate of {self.plan.original!r}: it cannot be changed")


class GroupedUnit(ElasticUnit):
    """One copy of a unit. All copies are in `group`, this one included."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group: Sequence[GroupedUnit] = [self]

    @property
    def all_copies(self) -> Sequence[ElasticUnit]:
        return self.group

    @property
    def whole(self) -> bool:
        """Whether it lacks nothing, and nothing is being made up for."""
        return True

    def check_change(self, after: int) -> None:
        if not all(unit.whole for unit in self.group):
            raise UsageError(
                f"unit {self.plan.original!r} cannot be changed now: one of its copies is being brought up to date; try again in "
                "a moment"
            )
        super().check_change(after)

    def _together(self, owner: int) -> Iterator[tuple[GroupedUnit, int]]:
        """The sub-unit in the owner's place in each copy. Raises UsageError."""
        for unit in self.group:
            if unit.table is not None and owner in unit.table.owners():
                place, starts = unit.table.owners().index(owner), _starts(unit.table)
                break
        else:
            self._owner(owner)
            return
        for unit in self.group:
            assert unit.table is not None
            if _starts(unit.table) != starts:
                raise UsageError(
                    f"unit {self.plan.original!r}: its copies are divided in different ways, since one of their changes was dropped; "
                    f"give it another number of sub-units: esault scale {self.plan.original} N"
                )
        yield from [(unit, unit.table.owners()[place]) for unit in self.group if unit.table is not None]

    def split(self, owner: int, now: float, at: int | None = None, reason: str = "", policy: str = "by hand") -> None:
        """As any unit's, in all copies."""
        pairs = list(self._together(owner))
        for unit, _ in pairs:
            unit.check_change(unit.width + 1)
        for unit, each in pairs:
            ElasticUnit.split(unit, each, now, at, reason, policy)

    def merge(self, owner: int, now: float, reason: str = "", policy: str = "by hand") -> None:
        """As any unit's, in all copies."""
        pairs = list(self._together(owner))
        for unit, _ in pairs:
            unit.check_change(unit.width - 1)
        for unit, each in pairs:
            ElasticUnit.merge(unit, each, now, reason, policy)

    def rescale(self, n: int, now: float, reason: str = "", policy: str = "by hand") -> None:
        """As any unit's, in all copies."""
        if n >= 1:
            for unit in self.group:
                unit.check_change(n)
        for unit in self.group:
            ElasticUnit.rescale(unit, n, now, reason, policy)

    def adopt(self, after: OutputTable, news: int, now: float, kind: str, reason: str, policy: str) -> None:
        """As any unit's, in all copies."""
        assert self.table is not None
        tables: list[tuple[GroupedUnit, OutputTable]] = []
        own = self.table.owners()
        for unit, first in self._together(own[0]):
            assert unit.table is not None and first is not None
            unit.check_change(len(after.owners()))
            named = dict(zip(own, unit.table.owners()))
            version, pairs = after.snapshot()
            tables.append((unit, OutputTable([(start, named.get(owner, owner)) for start, owner in pairs], version)))
        for unit, table in tables:
            ElasticUnit.adopt(unit, table, news, now, kind, reason, policy)

    def move(self, owner: int, now: float, reason: str = "", policy: str = "by hand", host: str | None = None) -> None:
        """A new sub-unit takes the place of this one, whichever copy it is of; the other copies go on."""
        unit = next((u for u in self.group if u.table is not None and owner in u.table.owners()), self)
        ElasticUnit.move(unit, owner, now, reason, policy, host)


def _starts(table: OutputTable) -> list[tuple[int, int]]:
    """Where intervals begin, and whose they are by place among the owners."""
    places = {owner: i for i, owner in enumerate(table.owners())}
    return [(start, places[owner]) for start, owner in table.snapshot()[1]]
