"""The plans of a run in one process: what stands for spouts and sinks in them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from esault.errors import TopologyError
from esault.testing.memory_connectors import collecting, given
from esault.topology.plan import Plan, UnitPlan
from esault.topology.spout import Spout

__all__ = ["LocalPlans"]


class LocalPlans:
    """The plan that the driver has, and one for each sub-unit, with objects of its own. `real`: with the sinks as they are."""

    def __init__(
        self,
        plan: Plan,
        plan_of: Callable[[], Plan],
        spouts: Mapping[str, Iterable[tuple[Any, Any]] | Spout[Any, Any]],
        real: bool,
        landed: dict[str, list[Any]],
        prepared: dict[int, list[Any]],
    ) -> None:
        """`plan_of` makes the plan anew; `landed` and `prepared` are what sinks collect into. Raises TopologyError."""
        self._plan = plan
        self._plan_of = plan_of
        self._given = {name: rows if isinstance(rows, Spout) else list(rows) for name, rows in spouts.items()}
        self._real = real
        self._landed, self._prepared = landed, prepared
        #: of sub-units whose real sinks were used
        self._made: list[UnitPlan] = []
        for name in self._given:
            if name not in plan.units or plan.units[name].kind != "spout":
                known = ", ".join(unit.name for unit in plan.units.values() if unit.kind == "spout")
                raise TopologyError(f"spouts={{{name!r}: ...}}: there is no spout of that name; there are: {known}")

    def of_driver(self) -> Plan:
        """Return the whole plan; a given spout can seek, whatever the one can that it stands for."""
        units = {name: unit if self._real else self._collecting(unit) for name, unit in self._plan.units.items()}
        for name, rows in self._given.items():
            units[name] = replace(units[name], spout=given(rows))
        return replace(self._plan, units=units)

    def of_sub_unit(self, name: str) -> UnitPlan:
        """Return the plan of a new sub-unit of this unit."""
        unit = self._plan_of().unit(name)
        if self._real:
            self._made.append(unit)
            return unit
        if unit.kind == "spout":
            # Each sub-unit has an object of its own, as it has where each is a process.
            spout = given(self._given[name]) if name in self._given else copy.deepcopy(unit.spout)
            unit = replace(unit, spout=spout)
        return self._collecting(unit)

    def _collecting(self, unit: UnitPlan) -> UnitPlan:
        return collecting(unit, self._landed, self._prepared)

    def collected(self) -> dict[str, list[Any]]:
        """Return the rows of `Collect` sinks that really ran, by the sink's name."""
        rows: dict[str, list[Any]] = {}
        sinks = {id(sink.sink): sink for unit in self._made for sink in unit.sinks}  # sub-units may share one
        for sink in sinks.values():
            if isinstance(found := getattr(sink.sink, "rows", None), list):
                rows.setdefault(sink.name, []).extend(found)
        return rows
