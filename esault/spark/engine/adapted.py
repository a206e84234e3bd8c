"""The plan of a topology as Spark runs it: without what Spark has in a way of its own, where what comes out is the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from esault.elasticity.policy import DEFAULT
from esault.spark.engine.whole_splits import WholeSplits, can_be_whole, each_alone
from esault.topology.builder import Topology
from esault.topology.plan import Plan, UnitPlan
from esault.topology.split_source import SplitSource
from esault.topology.windowed_spout import WindowedSpout

__all__ = ["adapted", "notices"]


def adapted(topology: Topology) -> Plan:
    """Return the plan: units once, whatever replicas they ask for, and spouts as Spark reads them."""
    plan = topology.plan(replicas=False)
    return replace(plan, units={name: _unit(unit) for name, unit in plan.units.items()})


def _unit(unit: UnitPlan) -> UnitPlan:
    spout = unit.spout
    if isinstance(spout, WindowedSpout):
        spout = spout.spout
    if isinstance(spout, SplitSource) and can_be_whole(unit):
        spout = WholeSplits(spout, each_alone(unit))
    return replace(unit, spout=spout, replicas=1, buffer=None, keys_in_memory=None)


def notices(topology: Topology, policies: Iterable[str] = ()) -> list[str]:
    """Return what a topology, or a run of it with these policies, asks for that Spark has in a way of its own; empty where there is nothing."""
    found = []
    if DEFAULT in policies:
        found.append(
            f"policy {DEFAULT} is left out: Spark cannot change the number of tasks while it runs; choose with --parallelism UNIT=N"
        )
    for unit in topology.plan(replicas=False).units.values():
        where = f"unit {unit.name!r}"
        if isinstance(unit.spout, WindowedSpout):
            found.append(f"{where}: Spark's batches are the slices of MicroBatches; its spout is read as it comes")
        if unit.parallelism > 1 and each_alone(unit):
            found.append(
                f"{where}: parallelism={unit.parallelism} is left out: with event time each split of {type(unit.spout).__name__} is a part of its own"
            )
        if unit.replicas > 1:
            found.append(f"{where}: replicas={unit.replicas} is left out: Spark runs a task that was lost again")
        if unit.buffer is not None:
            found.append(
                f"{where}: buffer={unit.buffer} is left out: Spark reads as much as it can process, and nothing is dropped"
            )
        if unit.keys_in_memory is not None:
            found.append(f"{where}: keys_in_memory={unit.keys_in_memory} is left out: Spark keeps state in RocksDB")
    return found
