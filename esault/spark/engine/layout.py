"""The layout of units on Spark.

Spark chains operators; a topology is a graph. So all rows go through one chain: a map stage, then one stage with state for each
*level*. A unit with state has a level above all that sends to it, units of one level share its stage, and rows for a later one
(or for a sink) pass. A unit without state is *inlined*: each process that sends to it has an object of it, as function steps do.

Each task of a unit with state has a *group*, by which Spark brings its rows together. Group numbers are chosen so that Spark's
hash puts them into the partition that they are meant for.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import CodeType

from esault.spark.engine.whole_splits import WholeSplits, each_alone
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.context import Context
from esault.topology.method_code import code_of, codes_of_methods
from esault.topology.plan import Plan, UnitPlan

__all__ = ["Layout", "lay_out", "partition_of", "stateless"]

#: where attributes are made and not kept
_MAKING = {"__init__", "open", "close", "__getstate__", "__setstate__"}
_WRITES = {"STORE_ATTR", "DELETE_ATTR"}
#: what changes a dict, a list or a set
_CHANGES = {"STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"}
_CHANGING = {
    *("add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft", "insert"),
    *("intersection_update", "move_to_end", "pop", "popitem", "popleft", "push", "remove", "setdefault", "subtract"),
    *("symmetric_difference_update", "update"),
}
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


def stateless(unit: UnitPlan) -> bool:
    """Return whether each tuple may go to another object of this bolt without a difference.

    That is so for a bolt that comes by shuffle, has no `tick` and no `finish` of its own, no state when it is fresh, and
    no line in its methods that sets an attribute, or changes what stands in one that `open` has made, such as a cache. What hides from
    that look is found while it runs (`runner`).
    """
    if unit.objects != "sub-unit" or not all(i.grouping.promises.anywhere for i in unit.inputs):
        return False
    if unit.tick_every is not None or unit.factory is None:
        return False
    made = unit.factory()
    cls = type(made)
    own = Bolt if isinstance(made, Bolt) else BatchBolt
    if cls.finish is not own.finish or (not unit.batch and made.__getstate__()):
        return False
    bases = (Bolt, BatchBolt, object)
    opened = {name for code in _codes(cls, ("open",)) for name in _set_by(code)}
    return not any(_keeps(code, opened) for _, code in codes_of_methods(cls, _MAKING, bases))


def _codes(cls: type, names: tuple[str, ...]) -> Iterator[CodeType]:
    for base in cls.__mro__:
        for name in names:
            if base not in (Bolt, BatchBolt) and name in vars(base):
                yield from code_of(vars(base)[name])


def _set_by(code: CodeType) -> set[str]:
    return {str(step.argval) for step in dis.get_instructions(code) if step.opname == "STORE_ATTR"}


def _keeps(code: CodeType, opened: set[str]) -> bool:
    names = set(code.co_names)
    if {"keyed", "setattr", "__dict__", "vars"} & names:
        return True
    steps = {step.opname for step in dis.get_instructions(code)}
    if steps & _WRITES:
        return True
    return bool(opened & names and (steps & _CHANGES or names & _CHANGING))
