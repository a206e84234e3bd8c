"""Changes that are asked of one unit: refused with one clear line, or begun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from esault.control.units.change import Requested
from esault.control.units.endings import Endings
from esault.control.units.rescale import Rescale
from esault.control.units.unit_state import UnitState
from esault.counters import counted
from esault.errors import UsageError
from esault.routing.table import OutputTable
from esault.routing.table_change import merged, moved, rescaled, split

__all__ = ["BY_HAND", "ChangeRequests", "Requests"]

#: the author of a change where no policy asked for it
BY_HAND = "by hand"


class Requests(Protocol):
    """Ways to ask for a change. Each returns the change's id, which stands in its record, and raises UsageError."""

    def split(self, owner: int, now: float, at: int | None = None, reason: str = "", policy: str = BY_HAND) -> int:
        """Give a new sub-unit the upper part of the owner's largest interval."""
        ...

    def merge(self, owner: int, now: float, reason: str = "", policy: str = BY_HAND) -> int:
        """Give the owner's intervals to their neighbours; the owner leaves."""
        ...

    def move(self, owner: int, now: float, reason: str = "", policy: str = BY_HAND, host: str | None = None) -> int:
        """Put a new sub-unit in the owner's place, on `host` where one is named; the owner leaves."""
        ...

    def rescale(self, n: int, now: float, reason: str = "", policy: str = BY_HAND) -> int | None:
        """Give the unit n sub-units with equal shares, in one change; None: it has as many already."""
        ...

    def adopt(self, after: OutputTable, news: int, now: float, kind: str, reason: str, policy: str) -> int:
        """Take any other table: owners below zero stand for new sub-units, -1 the first."""
        ...


class ChangeRequests:
    """Changes of one unit alone. `id`: of a request that goes to several units; else it gets the next one."""

    def __init__(
        self,
        state: UnitState,
        rescale: Rescale,
        endings: Endings,
        steady: Callable[[], bool],
        check_replicas: Callable[[], None],
        new_id: Callable[[], int],
    ) -> None:
        """`steady`: whether the unit is neither starting nor ending; `check_replicas` raises UsageError."""
        self._state = state
        self._rescale = rescale
        self._endings = endings
        self._steady = steady
        self._check_replicas = check_replicas
        self.new_id = new_id

    def check(self, after: int) -> None:
        """Refuse a change to so many sub-units that cannot be. Raises UsageError with one clear line."""
        plan, name = self._state.plan, self._state.name
        if plan.merger:
            raise UsageError(f"unit {name!r} is the merger of {plan.original!r}: it cannot be changed")
        self._check_replicas()
        if plan.kind == "spout" and not plan.reads_splits:
            raise UsageError(
                f"unit {name!r} is a spout whose parts are dealt out at the start, it cannot be scaled; one that reads a SplitSource can"
            )
        if plan.objects == "unit" and after != 1:
            raise UsageError(
                f"unit {name!r} has one object (grouping single): it cannot have {counted(after, 'sub-unit')}"
            )
        if after < plan.min_parallelism:
            raise UsageError(
                f"unit {name!r} cannot have {counted(after, 'sub-unit')}: its min_parallelism is {plan.min_parallelism}"
            )
        if plan.max_parallelism is not None and after > plan.max_parallelism:
            raise UsageError(
                f"unit {name!r} cannot have {counted(after, 'sub-unit')}: its max_parallelism is {plan.max_parallelism}"
            )
        if self._rescale.change is not None or self._endings.leaving:
            raise UsageError(f"unit {name!r} is being changed already; try again when that is over")
        if not self._steady():
            raise UsageError(f"unit {name!r} cannot be changed now: it is starting, ending, or has just lost a process")

    def check_owner(self, incarnation: int) -> None:
        """Refuse a sub-unit that owns nothing. Raises UsageError."""
        owners = self._table.owners()
        if incarnation not in owners:
            known = ", ".join(map(str, owners))
            raise UsageError(f"unit {self._state.name!r} has no sub-unit {incarnation}; it has {known}")

    @property
    def _table(self) -> OutputTable:
        assert self._state.table is not None
        return self._state.table

    def split(
        self,
        owner: int,
        now: float,
        at: int | None = None,
        reason: str = "",
        policy: str = BY_HAND,
        id: int | None = None,
    ) -> int:
        """Give a new sub-unit the upper part of the owner's largest interval. Raises UsageError."""
        self.check(self._state.width + 1)
        self.check_owner(owner)
        table = self._table
        return self._begin("split", lambda news: split(table, owner, news[0], at), 1, now, reason, policy, id)

    def merge(self, owner: int, now: float, reason: str = "", policy: str = BY_HAND, id: int | None = None) -> int:
        """Give the owner's intervals to their neighbours; the owner leaves. Raises UsageError."""
        self.check(self._state.width - 1)
        self.check_owner(owner)
        table = self._table
        return self._begin("merge", lambda news: merged(table, owner), 0, now, reason, policy, id)

    def move(self, owner: int, now: float, reason: str = "", policy: str = BY_HAND, host: str | None = None) -> int:
        """Put a new sub-unit in the owner's place, on `host` where one is named; the owner leaves. Raises UsageError."""
        self.check(self._state.width)
        self.check_owner(owner)
        table = self._table
        return self._begin("move", lambda news: moved(table, owner, news[0]), 1, now, reason, policy, None, host)

    def rescale(self, n: int, now: float, reason: str = "", policy: str = BY_HAND, id: int | None = None) -> int | None:
        """Give the unit n sub-units with equal shares, in one change; None: it has as many already. Raises UsageError."""
        if n < 1:
            raise UsageError(f"unit {self._state.name!r} cannot have {n} sub-units: it needs one at least")
        self.check(n)
        table = self._table
        owners = table.owners()
        if n == len(owners):
            return None
        staying = owners[: min(n, len(owners))]
        return self._begin(
            "rescale", lambda news: rescaled(table, [*staying, *news]), n - len(staying), now, reason, policy, id
        )

    def adopt(
        self, after: OutputTable, news: int, now: float, kind: str, reason: str, policy: str, id: int | None = None
    ) -> int:
        """Take any other table: owners below zero stand for new sub-units, -1 the first. Raises UsageError."""
        self.check(len(after.owners()))

        def named(incarnations: list[int]) -> OutputTable:
            table = after.copy()
            for i, incarnation in enumerate(incarnations):
                table.replace(-1 - i, incarnation)
            return table

        return self._begin(kind, named, news, now, reason, policy, id)

    def _begin(
        self,
        kind: str,
        table_of: Callable[[list[int]], OutputTable],
        news: int,
        now: float,
        reason: str,
        policy: str,
        id: int | None,
        host: str | None = None,
    ) -> int:
        number = self.new_id() if id is None else id
        self._rescale.handle(Requested(number, kind, table_of, news, reason, policy, host), now)
        return number
