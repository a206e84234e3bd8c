"""The sinks of a local run, as far as the driver calls them: the real ones, or lists in place of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from esault.background import BackgroundLoop
from esault.control.run.driver import Driver
from esault.errors import EsaultError
from esault.flow.operators.user_error import UserError, is_transient, pack_cause
from esault.flow.send.recommit import go_back, recommit
from esault.flow.send.sink_call import call_sink, waited
from esault.topology.plan import SinkPlan
from esault.topology.sink import RunInfo

__all__ = ["LocalSinks"]


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
