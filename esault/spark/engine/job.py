"""The job that workers of a run are given: plain values, from which each of them builds the topology itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from esault.spark.engine.adapted import adapted
from esault.spark.engine.layout import Layout
from esault.topology.located import Located
from esault.topology.plan import Plan

__all__ = ["Job", "built"]

_PLANS: dict[str, Plan] = {}


@dataclass(frozen=True)
class Job:
    """One life of a run."""

    located: Located
    params: Mapping[str, Any]
    #: identity, unique over all runs
    run: str
    layout: Layout
    #: the run's own folder
    run_dir: str
    #: the folder of the state, seen by driver and workers: what spouts that cannot seek have read is there, and what workers measured
    shared: str
    #: identity of the folder of the state
    lineage: str = ""
    #: the epoch of the query's first batch
    first: int = 0
    #: unit -> tasks that have left a state for it in the folder `seed_dir`, of another number than it has now
    seeds: Mapping[str, int] = field(default_factory=dict)
    seed_dir: str = ""

    def plan(self) -> Plan:
        """The plan of this process, with objects that this process may use as one."""
        found = _PLANS.get(self.run)
        if found is None:
            _PLANS.clear()  # a worker serves one run after the other
            found = _PLANS[self.run] = self.fresh_plan()
        return found

    def fresh_plan(self) -> Plan:
        """Another one, whose spouts and sinks are its own."""
        return built(self.located, self.params)


def built(located: Located, params: Mapping[str, Any]) -> Plan:
    """The plan of a topology, in a worker. Raises LocateError, or the TopologyError that its function ran into."""
    if os.path.isdir(located.cwd) and os.getcwd() != located.cwd:
        _anchor_imports()
        os.chdir(located.cwd)  # what relative paths mean
    _lead(os.path.basename(located.folder))
    return adapted(located.build(dict(params)))


def _lead(archive: str) -> None:
    """Have what was shipped for this run be found before what was for others of the session."""
    for entry in sys.path:
        if archive.endswith(".zip") and os.path.basename(entry) == archive:
            sys.path.remove(entry)
            sys.path.insert(0, entry)
            return


def _anchor_imports() -> None:
    """Spark puts shipped files on the path by names that are relative to a worker's first folder."""
    sys.path[:] = [os.path.abspath(entry) if entry else entry for entry in sys.path]
    for module in list(sys.modules.values()):
        paths = getattr(module, "__path__", None)
        if isinstance(paths, list):
            paths[:] = map(os.path.abspath, paths)
