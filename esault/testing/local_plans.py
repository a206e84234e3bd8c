"""The plans of a run in one process: what stands for spouts and sinks in them."""

from __future__ import annotations

import copy
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from esault.background import BackgroundLoop
from esault.control.run.driver import Driver
from esault.errors import EsaultError, TopologyError, UsageError
from esault.flow.operators.user_error import UserError, is_transient, pack_cause
from esault.flow.send.recommit import go_back, recommit
from esault.flow.send.sink_call import call_sink, waited
from esault.testing.memory_connectors import collecting, given
from esault.testing.sent import Sent
from esault.topology.plan import Plan, SinkPlan, UnitPlan
from esault.topology.sink import RunInfo
from esault.topology.spout import Spout

__all__ = ["LocalPlans", "LocalSinks"]


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
            rows = self._given[name]
            for row in () if isinstance(rows, Spout) else rows:
                if not isinstance(row, (tuple, list)) or len(row) != 2:
                    raise TopologyError(
                        f"spouts={{{name!r}: ...}}: {reprlib.repr(row)} is among its tuples; write each as (key, value)"
                    )

    def sent(self, name: str) -> Sent:
        """Return the spout of this name whose tuples a test sends. Raises UsageError for any other."""
        spout = self._given.get(name)
        if not isinstance(spout, Sent):
            raise UsageError(
                f"send({name!r}, ...): the tuples of this spout come by themselves; write LocalRuntime(..., spouts={{{name!r}: Sent()}}), "
                "from esault.testing"
            )
        return spout

    def end_sent(self) -> None:
        """End all spouts whose tuples a test sends."""
        for spout in self._given.values():
            if isinstance(spout, Sent):
                spout.end()

    def of_driver(self) -> Plan:
        """Return the whole plan; a given spout can seek, whatever the one can that it stands for."""
        units = {name: unit if self._real else self._collecting(unit) for name, unit in self._plan.units.items()}
        for name, rows in self._given.items():
            units[name] = replace(units[name], spout=given(rows))
        units = {name: self._in_order(unit) for name, unit in units.items()}
        return replace(self._plan, units=units)

    def of_sub_unit(self, name: str, part: int = 0) -> UnitPlan:
        """Return the plan of a new sub-unit of this unit, the `part`th of those that it begins with."""
        unit = self._plan_of().unit(name)
        if self._real:
            self._made.append(unit)
            return unit
        if unit.kind == "spout":
            # Each sub-unit has an object of its own, as it has where each is a process.
            spout = given(self._given[name], part) if name in self._given else copy.deepcopy(unit.spout)
            unit = self._in_order(replace(unit, spout=spout))
        return self._collecting(unit)

    def _in_order(self, unit: UnitPlan) -> UnitPlan:
        """Have a spout wait for none whose tuples a test sends: the test says what comes first."""
        return replace(unit, after=tuple(n for n in unit.after if not isinstance(self._given.get(n), Sent)))

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


class LocalSinks:
    """Begins the sinks of a run and commits for it."""

    def __init__(
        self,
        sinks: tuple[SinkPlan, ...],
        real: bool,
        landed: Mapping[str, list[Any]],
        prepared: dict[int, list[Any]],
        background: BackgroundLoop,
    ) -> None:
        """`landed` and `prepared` rows of those that are not real."""
        self._sinks = sinks
        self._real = real
        self._landed = landed
        self._prepared = prepared
        self._background = background
        self._begun = False

    def begin(self, driver: Driver, run: str, lineage: str, from_savepoint: bool = False) -> None:
        """Tell them of the run, once, and commit what belongs to the checkpoint that it goes on from. Raises SinkError, UserError."""
        for sink in self._sinks if self._real and not self._begun else ():
            resumed = driver.run_checkpoints.resumed_from > 0
            info = RunInfo(run, driver.plan.name, sink.name, resumed, lineage, from_savepoint)
            call_sink(sink.name, "begin", partial(self._begin, sink, info))
        self._begun = True
        self.commit_again(driver)

    def _begin(self, plan: SinkPlan, info: RunInfo) -> None:
        waited(plan.sink.begin(info), self._background)

    def commit_again(self, driver: Driver) -> None:
        """Show what was prepared for complete checkpoints, also where its process died before it could; what came later is not shown."""
        if self._real and driver.phase == "ended":
            recommit(driver.completed, self._sinks, self._background)
        elif self._real:
            go_back(driver.completed, self._sinks, self._background, bool(driver.restores.all))
        else:
            if driver.completed is not None:
                for handle in driver.completed.handles:
                    self._landed[handle.sink].extend(self._prepared.pop(handle.handle, []))
            if driver.restores.all:
                self._prepared.clear()

    def commit_for_run(self, driver: Driver, now: float) -> None:
        """Have those commit that do so for the whole run."""
        try:
            recommit(driver.run_checkpoints.committing, self._sinks, self._background, whole=False)
        except (EsaultError, UserError) as error:
            driver.run_checkpoints.commit_failed(str(error), pack_cause(error), is_transient(error), now)
        else:
            driver.run_checkpoints.committed(now)
