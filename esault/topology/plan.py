"""The validated graph: what every process builds from the topology file, and the engines run.

A unit's output streams are trees of outlets. An outlet applies its function steps to a batch, hands the
result to its sinks, routes it along its edges and passes it to its branches, all in the unit's process.

It is one module of over 300 lines: it is a list of values with what each stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

from esault.payload.class_names import vouch
from esault.topology.aggregates.aggregate import Aggregate
from esault.topology.error_policy import ErrorPolicy, fail
from esault.topology.grouping import Grouping
from esault.topology.known_names import no_such
from esault.topology.sink import Sink
from esault.topology.split_source import SplitSource
from esault.topology.spout import Spout, has_position
from esault.topology.step import Step
from esault.topology.windowing import WindowPlan
from esault.value_class import value_class

__all__ = ["MOST_REPLICAS", "Edge", "Input", "Outlet", "Plan", "SinkPlan", "UnitPlan"]

#: active replicas of a unit, at most
MOST_REPLICAS = 4


@value_class(frozen=True)
class Edge:
    """A routed connection from an outlet to one input of a unit."""

    #: name of the receiving unit
    target: str
    #: which of the receiving unit's inputs, an index into `UnitPlan.inputs`
    input: int
    grouping: Grouping
    #: of an edge to a replica of a unit: the replica's id, which rows that go there are accounted for under; 0 else
    replica_id: int = 0


@value_class(frozen=True)
class Input:
    """One input of a unit, as its receiving side sees it."""

    #: name of the sending unit
    source: str
    #: what `process_stream` is told: the sending unit's name, or "unit.stream" for a stream beside the main one
    stream: str
    grouping: Grouping


@value_class(frozen=True)
class SinkPlan:
    """A sink and its name."""

    name: str
    sink: Sink


@value_class(frozen=True)
class Outlet:
    """The way of a batch of one stream inside the unit's process; see the module."""

    steps: tuple[Step, ...] = ()
    sinks: tuple[SinkPlan, ...] = ()
    edges: tuple[Edge, ...] = ()
    branches: tuple[Outlet, ...] = ()
    #: bolts that run here, in the unit's process; see `topology/chaining.py`
    bolts: tuple[UnitPlan, ...] = ()

    def walk(self) -> Iterator[Outlet]:
        """This outlet and all below it, those of chained bolts included."""
        yield self
        for bolt in self.bolts:
            for outlet in bolt.streams.values():
                yield from outlet.walk()
        for branch in self.branches:
            yield from branch.walk()


@value_class(frozen=True)
class UnitPlan:
    """A spout or a bolt with all that is said about it."""

    name: str
    #: "spout" or "bolt"
    kind: str
    #: the object of a spout; None for a bolt
    spout: Spout[Any, Any] | None = None
    #: makes the objects of a bolt; None for a spout
    factory: Callable[[], Any] | None = None
    #: True when the factory makes a BatchBolt
    batch: bool = False
    #: what one object stands for: "key", "partial_key", "sub-unit" or "unit"
    objects: str = "sub-unit"
    inputs: tuple[Input, ...] = ()
    #: stream name -> outlet; the main stream's name is ""
    streams: Mapping[str, Outlet] = field(default_factory=dict)
    parallelism: int = 1
    min_parallelism: int = 1
    #: None: as many as there are slots
    max_parallelism: int | None = None
    on_error: ErrorPolicy = field(default_factory=fail)
    #: seconds after which an object without tuples is put away, its state kept; None: never
    idle_after: float | None = None
    #: keys whose objects one sub-unit holds in memory at most, the states of the others being on a disk; None: any number
    keys_in_memory: int | None = None
    #: seconds after which an object without tuples is finished and forgotten; None: never
    expire_after: float | None = None
    #: seconds between two calls of `tick`; None: no ticks
    tick_every: float | None = None
    #: calls of `async def process` that one sub-unit has open at most; None: `process` is a plain def
    concurrency: int | None = None
    #: tuples that wait in one sub-unit's inbox at most, beyond which they are dropped; None: senders wait instead
    buffer: int | None = None
    #: True when a sink below wants row ids, so that this unit carries them
    wants_id: bool = False
    #: active replicas of this unit; see `topology/replicas.py`
    replicas: int = 1
    #: which of them this is, from 0
    replica_index: int = 0
    #: number of this replica in the topology, from 1: its account is kept under it; 0 where there are none
    replica_id: int = 0
    #: for replicas and their merger: the name that the user gave; empty else
    original: str = ""
    #: a merger: passes the first result for each row on
    merger: bool = False
    #: the topology has units with replicas, so that roots have an account for each
    tracks_replicas: bool = False
    #: one object per key and window; None: per key
    window: WindowPlan | None = None
    #: "processing" or "event": the time by which `expire_after` counts
    expire_by: str = "processing"
    #: the objects of the bolt set timers, or something of them ends by event time
    timers: bool = False
    #: for each input what gives a value's time, where objects ask for it; else empty
    times: tuple[Callable[[Any], float], ...] = ()
    #: the same of a bolt that sets timers and does not ask for the time of a tuple, None where it is not known: each is to have one
    timer_times: tuple[Callable[[Any], float] | None, ...] = ()
    #: name -> aggregate, of a bolt that keeps nothing else: engines that have these by name may use their own
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)
    #: its values are such as `Combine` makes of those of the user's
    combined: bool = False
    #: says before a run what is wrong with what the bolt needs, such as a table on a server; None: nothing is asked
    check: Callable[[], None] | None = None
    #: whether it is sent watermarks by all its senders
    watermarks: bool = False
    #: units that it sends watermarks to
    watermark_targets: frozenset[str] = frozenset()
    #: whether it may run in the process of the unit before it
    chain: bool = True
    #: of a spout: those that are read before it
    after: tuple[str, ...] = ()
    #: of a spout: another one is read after it
    awaited: bool = False

    @property
    def spooled(self) -> bool:
        """Return whether this is a spout that cannot seek: with checkpoints what it reads is kept on disk."""
        return self.spout is not None and not has_position(self.spout)

    @property
    def reads_splits(self) -> bool:
        """Return whether this is a spout whose source is read in splits, so that its sub-units can become more and fewer."""
        return isinstance(self.spout, SplitSource)

    @property
    def broadcast_inputs(self) -> frozenset[int]:
        """Return which of its inputs bring broadcast state to all its sub-units."""
        if self.objects != "key":
            return frozenset()
        return frozenset(i for i, each in enumerate(self.inputs) if each.grouping.promises.to_all)

    @property
    def keeps_watermark(self) -> bool:
        """Return whether its state says, under no key, how far time had come."""
        return self.window is not None or (self.timers and self.objects == "key")

    @property
    def keeps_more(self) -> bool:
        """Return whether its state says, under no key, how far time had come, or holds broadcast state."""
        return self.keeps_watermark or bool(self.broadcast_inputs)

    @property
    def in_parts(self) -> bool:
        """Return whether what a key is called on the wire, (key, part), is not what its user calls it."""
        return any(each.grouping.promises.in_parts for each in self.inputs)

    @property
    def keyed(self) -> bool:
        """Return whether rows and state move: by key, or all of them."""
        return self.objects == "unit" or any(i.grouping.promises.keyed for i in self.inputs)

    @property
    def shares_waiting(self) -> bool:
        """Return whether rows that wait are shared with new sub-units, since any will do."""
        alone = self.replicas == 1 and not self.merger
        return alone and bool(self.inputs) and all(each.grouping.promises.anywhere for each in self.inputs)

    @property
    def sinks(self) -> tuple[SinkPlan, ...]:
        """All sinks that run in this unit's process."""
        return tuple(s for outlet in self.streams.values() for o in outlet.walk() for s in o.sinks)

    @property
    def bolts(self) -> tuple[UnitPlan, ...]:
        """All bolts that can run in this unit's process, those chained to one another included."""
        return tuple(b for outlet in self.streams.values() for o in outlet.walk() for b in o.bolts)

    @property
    def dead_letter_paths(self) -> tuple[str, ...]:
        """Paths at which the unit, its function steps and bolts that are chained to it keep dead letters, each once."""
        outlets = [each for outlet in self.streams.values() for each in outlet.walk()]
        steps = [step.on_error.path for each in outlets for step in each.steps]
        # walk() has their outlets; to ask each for all below it would take twice as long with each in a row
        bolts = [bolt.on_error.path for each in outlets for bolt in each.bolts]
        return tuple(dict.fromkeys(path for path in (self.on_error.path, *steps, *bolts) if path))

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All edges that leave this unit."""
        return tuple(e for outlet in self.streams.values() for o in outlet.walk() for e in o.edges)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the units it sends to, each once."""
        return tuple(dict.fromkeys(e.target for e in self.edges))


@value_class(frozen=True)
class Plan:
    """A whole topology, validated; units stand in an order in which senders come first."""

    name: str
    units: Mapping[str, UnitPlan]
    #: seconds without any progress after which a root is replayed
    replay_after: float = 300.0
    #: classes and packages whose objects may be in values and state besides those that are known
    types: tuple[type | str, ...] = ()
    #: old name -> what it is now, of the topology, of units and of classes
    moved: Mapping[str, type | str] = field(default_factory=dict)
    #: bolts that run in the process of another unit -> that unit, which is in `units` where they are not
    chained: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Whatever process has the plan, reads and writes values by it.
        if self.types or self.moved:
            vouch(self.types, [(old, new) for old, new in self.moved.items() if isinstance(new, type)])

    def unit(self, name: str) -> UnitPlan:
        """Return the unit of this name, also where it is chained. Raises KeyError."""
        if name not in self.chained:
            return self.units[name]
        return next(bolt for bolt in self.units[self.chained[name]].bolts if bolt.name == name)

    def now(self, name: str) -> str:
        """Return the name that the topology or the unit of this name has today."""
        new = self.moved.get(name, name)
        return new if isinstance(new, str) else name

    def unknown(self, name: str) -> str:
        """Return the message where there is no unit of this name to deal with, with the remedy where it is chained."""
        if name in self.chained:
            return (
                f"unit {name!r} is chained: it runs in the process of {self.chained[name]!r}, with which it grows and shrinks; `esault scale "
                f"{name} N` gives it processes of its own, and so does chain=False where it is made, or --no-chaining"
            )
        names = [each for unit in self.units.values() for each in (unit.name, *(bolt.name for bolt in unit.bolts))]
        return no_such("there is no unit", name, dict.fromkeys(names))

    def senders(self, unit: str) -> tuple[str, ...]:
        """Names of the units whose sub-units send to `unit`, each once."""
        named = [i.source for i in self.units[unit].inputs]
        return tuple(dict.fromkeys([*named, *(u.name for u in self.units.values() if unit in self.targets(u))]))

    def targets(self, unit: UnitPlan) -> tuple[str, ...]:
        """Names of the units that the sub-units of `unit` send to, bolts that were chained to it and are not any more included."""
        apart = [bolt.name for bolt in unit.bolts if bolt.name in self.units]
        return tuple(dict.fromkeys([*unit.targets, *apart]))

    def above(self, unit: str) -> frozenset[str]:
        """Names of all units whose tuples come to `unit`, or lead to tuples that do."""
        found: set[str] = set()
        waiting = list(self.senders(unit))
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting += self.senders(each)
        return frozenset(found)

    def apart(self, unit: str) -> tuple[str, ...]:
        """Names of the units on whose hosts sub-units of `unit` are not to be, if there are others: the other replicas of the same."""
        of = self.units[unit]
        if of.replicas == 1:
            return ()
        return tuple(
            u.name for u in self.units.values() if u.replicas > 1 and u.original == of.original and u is not of
        )

    @property
    def sinks(self) -> tuple[SinkPlan, ...]:
        """All sinks of the topology, each once."""
        return tuple({s.name: s for unit in self.units.values() for s in unit.sinks}.values())
