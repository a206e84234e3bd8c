"""The layout of units on Spark.

Spark chains operators; a topology is a graph. So all rows go through one chain: a map stage, then one stage with state for each
*level*. A unit with state has a level above all that sends to it, units of one level share its stage, and rows for a later one
(or for a sink) pass. A unit without state is *inlined*: each process that sends to it has an object of it, as function steps do.

Each task of a unit with state has a *group*, by which Spark brings its rows together. Group numbers are chosen so that Spark's
hash puts them into the partition that they are meant for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from esault.spark.engine.statefulness import stateless
from esault.spark.engine.whole_splits import WholeSplits, each_alone
from esault.topology.context import Context
from esault.topology.plan import Plan, UnitPlan

__all__ = ["Layout", "lay_out", "partition_of"]

_MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class Layout:
    """The places of all units; plain values, kept with a checkpoint, since Spark freezes the number of partitions there."""

    #: spout -> parts
    parts: Mapping[str, int]
    #: unit with state -> tasks
    tasks: Mapping[str, int]
    #: units with state by level, the first level first
    levels: tuple[tuple[str, ...], ...]
    #: partitions of every level
    partitions: int

    @cached_property
    def groups(self) -> dict[tuple[str, int], int]:
        """(unit, task) -> its group."""
        numbers = _Numbers(self.partitions)
        for place in range(self.partitions):  # those that only pass come first, so that all workers agree
            numbers.next_in(place)
        found: dict[tuple[str, int], int] = {}
        for level in self.levels:
            place = 0
            for unit in level:
                for task in range(self.tasks[unit]):
                    found[unit, task] = numbers.next_in(place % self.partitions)
                    place += 1
        return found

    @cached_property
    def tasks_by_group(self) -> dict[int, tuple[str, int]]:
        """Group -> (unit, task)."""
        return {group: task_of for task_of, group in self.groups.items()}

    @cached_property
    def passing(self) -> tuple[int, ...]:
        """For each partition the group of rows that only pass through it."""
        numbers = _Numbers(self.partitions)
        return tuple(numbers.next_in(place) for place in range(self.partitions))

    def inlined(self, unit: str) -> bool:
        """Return whether it runs in the processes of its senders."""
        return unit not in self.tasks and unit not in self.parts


def lay_out(plan: Plan, chosen: Mapping[str, int], cores: int) -> Layout:
    """The layout of a plan; `chosen` is what the command says of parallelism, `cores` what Spark has.

    A unit whose objects stand for keys gets a task for each core, or as many as `max_parallelism` allows: Spark cannot change
    their number later, and results do not depend on it. A source of splits with event time is asked how many it has, unless they are known:
    each is a part, and workers read several of them. Raises TopologyError where they are too many.
    """
    depth: dict[str, int] = {}
    levels: list[list[str]] = []
    parts: dict[str, int] = {}
    tasks: dict[str, int] = {}
    readers = 1
    for name, unit in plan.units.items():
        if unit.spout is not None:
            depth[name] = 0
            if isinstance(unit.spout, WholeSplits) and each_alone(unit):
                parts[name] = chosen.get(name) or max(1, unit.spout.count(Context(name)))
            else:
                parts[name] = chosen.get(name, unit.parallelism)
                readers = max(readers, parts[name])
            continue
        before = max(depth[sender] for sender in plan.senders(name))
        if stateless(unit):
            depth[name] = before
            continue
        depth[name] = before + 1
        while len(levels) <= before:
            levels.append([])
        levels[before].append(name)
        tasks[name] = chosen.get(name) or _tasks(unit, cores)
    return Layout(parts, tasks, tuple(map(tuple, levels)), max([*tasks.values(), readers]))


def _tasks(unit: UnitPlan, cores: int) -> int:
    if unit.objects == "unit":
        return 1
    if unit.objects == "sub-unit":  # what comes out may depend on how many there are
        return unit.parallelism
    most = cores if unit.max_parallelism is None else min(cores, unit.max_parallelism)
    return max(unit.parallelism, most)


class _Numbers:
    """Numbers that Spark puts into the partitions we want, each given out once."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._next = 0
        self._kept: dict[int, list[int]] = {}

    def next_in(self, place: int) -> int:
        kept = self._kept.setdefault(place, [])
        while not kept:
            self._kept.setdefault(partition_of(self._next, self._partitions), []).append(self._next)
            self._next += 1
        return kept.pop(0)


def partition_of(number: int, partitions: int) -> int:
    """The partition into which Spark's hash partitioning of an `int` column puts a number from 0 on: Murmur3, seed 42."""
    k = number * 0xCC9E2D51 & _MASK
    k = (k << 15 | k >> 17) & _MASK
    k = k * 0x1B873593 & _MASK
    h = 42 ^ k
    h = (h << 13 | h >> 19) & _MASK
    h = (h * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h ^= h >> 16
    h = h * 0x85EBCA6B & _MASK
    h ^= h >> 13
    h = h * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return (h - (1 << 32) if h >> 31 else h) % partitions
