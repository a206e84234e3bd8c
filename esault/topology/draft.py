"""A topology while it is being written: what `Topology` and `Stream` add to, and `plan` freezes.

Units stand in the order in which they were added. A bolt can only take streams that exist, so this order has
senders first, and there are no cycles.

It is one module of over 300 lines: all that is added is checked against all that was added before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from esault.errors import TopologyError
from esault.topology.arguments import (
    check_moved,
    check_name,
    check_on_error,
    check_seconds,
    check_streams,
    check_types,
)
from esault.topology.broadcasting import check_broadcast, objects_of
from esault.topology.concurrency import check_concurrency
from esault.topology.error_policy import ErrorPolicy
from esault.topology.event_time import EventTime, checked_event_time
from esault.topology.examine import examine_sink, examine_spout
from esault.topology.factory import class_behind, examine_factory
from esault.topology.function import check_function
from esault.topology.inputs import check_grouping
from esault.topology.landing_places import check_places
from esault.topology.parallelism import Parallelism
from esault.topology.plan import Edge, Input, Outlet, Plan, SinkPlan, UnitPlan
from esault.topology.replicas import check_replicas, expanded
from esault.topology.state_clears import check_state_clears
from esault.topology.states_on_disk import why_not_on_disk
from esault.topology.step import Step
from esault.topology.timers import with_timers
from esault.topology.unit_options import UnitOptions, WindowOptions
from esault.topology.windowing import LATE, WindowPlan, checked_window

__all__ = ["Draft", "OutletDraft", "UnitDraft"]


@dataclass(eq=False)
class OutletDraft:
    """The draft of one stream, or of the stream behind a function step."""

    unit: str
    #: how messages and `process_stream` call it: "lines", or "match.unknown" for a stream beside the main one
    label: str
    steps: tuple[Step, ...] = ()
    sinks: list[SinkPlan] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    branches: list[OutletDraft] = field(default_factory=list)
    #: watermarks come along with its tuples
    has_time: bool = False
    #: gives the time of a value, where that is known
    time: Callable[[Any], float] | None = None
    #: seconds ahead of the clock beyond which a time of its tuples is not believed, as was said where event time starts
    ahead: float | None = None

    def walk(self) -> Iterator[OutletDraft]:
        """This one and all below it."""
        yield self
        for branch in self.branches:
            yield from branch.walk()

    def freeze(self) -> Outlet:
        """The outlet, with steps that nothing branches off from in one list."""
        end, steps = self, self.steps
        while not end.sinks and not end.edges and len(end.branches) == 1:
            (end,) = end.branches
            steps += end.steps
        return Outlet(steps, tuple(end.sinks), tuple(end.edges), tuple(branch.freeze() for branch in end.branches))


@dataclass(eq=False)
class UnitDraft:
    """A unit so far: what was said about it, and its streams."""

    #: without streams and ids, which are known at the end
    settings: UnitPlan
    streams: Mapping[str, OutletDraft]
    #: watermarks come by all its inputs
    timed: bool = False

    @property
    def outlets(self) -> Iterator[OutletDraft]:
        """All outlets of all streams."""
        return (outlet for stream in self.streams.values() for outlet in stream.walk())


class Draft:
    """Units, their streams and sinks; each `add_...` checks its arguments and changes nothing if one is wrong."""

    def __init__(
        self,
        name: str,
        replay_after: float,
        types: Sequence[type | str] = (),
        moved: Mapping[str, type | str] | None = None,
    ) -> None:
        self.name = check_name("topology", name)
        self.replay_after = check_seconds(f"topology {name!r}", "replay_after", replay_after)
        self.types = check_types(f"topology {name!r}", types)
        self.moved = check_moved(f"topology {name!r}", moved or {})
        self.units: dict[str, UnitDraft] = {}
        # What messages and process_stream call a stream: label -> whose it is, in words.
        self._labels: dict[str, str] = {}
        self._sinks: dict[str, str] = {}
        self._steps: set[str] = set()
        # Spouts and sinks, which cannot serve two places: the object's id -> its place, and the object, kept alive.
        self._objects: dict[int, tuple[str, object]] = {}

    def add_spout(self, name: str, spout: Any, options: UnitOptions, after: Sequence[OutletDraft] = ()) -> UnitDraft:
        """A unit that reads `spout`, once those above `after` have been read."""
        self._check_new_unit(name)
        spout = examine_spout(spout, name)
        parallelism = options.checked(name).width
        if not spout.parallel:
            cls = type(spout).__name__
            parallelism = parallelism.one(
                name,
                spout.alone
                or f"{cls} reads its source in one sub-unit. If each object can read its part alone (self.context.part "
                f"of self.context.parts), write `parallel = True` in the class {cls}; else leave it at 1",
            )
        self._check_unused(spout, f"unit {name!r}")
        self._objects[id(spout)] = (f"unit {name!r}", spout)
        awaited = tuple(self._spouts_above([outlet.unit for outlet in after]))
        return self._add(UnitPlan(name, "spout", spout=spout, after=awaited), parallelism, ())

    def _spouts_above(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the spouts that tuples of these units come from, each once."""
        waiting, seen = [*reversed(names)], set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue  # units that meet again and again have more ways up than a computer can go
            seen.add(name)
            settings = self.units[name].settings
            if settings.kind == "spout":
                yield name
            waiting += [each.source for each in reversed(settings.inputs)]

    def add_bolt(
        self,
        name: str,
        factory: Any,
        inputs: Sequence[tuple[OutletDraft, Any]],
        options: UnitOptions,
        windowed: WindowOptions | None = None,
        input_names: tuple[str, ...] | None = None,
    ) -> UnitDraft:
        """A unit that processes `inputs`, pairs of a stream and its grouping.

        `input_names`: what `process_stream` calls the inputs, where that is not their own names.
        """
        self._check_new_unit(name)
        where = f"unit {name!r}"
        batch = examine_factory(factory, name)
        checked = [(outlet, check_grouping(name, outlet.label, grouping)) for outlet, grouping in inputs]
        cls = class_behind(factory) or type(factory())
        objects = objects_of(name, cls, [(outlet.label, grouping) for outlet, grouping in checked])
        options = options.checked(name)
        parallelism = options.width
        if objects == "unit":
            parallelism = parallelism.one(
                name, "single() means one object in one sub-unit. Leave it at 1, or take another grouping"
            )
        streams = tuple(options.streams)
        window: WindowPlan | None = None
        starts: list[EventTime | None] = [None] * len(checked)
        if windowed is not None:
            window, starts = checked_window(name, windowed, checked, batch)
            if window.timed:
                if LATE in streams:
                    raise TopologyError(
                        f"{where}: the stream {LATE!r} is there without being declared; leave it out of streams"
                    )
                streams = (*streams, LATE)
        for stream in streams:
            self._check_new_label(f"{name}.{stream}", f"{where}, stream {stream!r}")
        labels = input_names or tuple(outlet.label for outlet, _ in checked)
        settings = UnitPlan(
            name,
            "bolt",
            factory=factory,
            batch=batch,
            objects=objects,
            inputs=tuple(Input(outlet.unit, label, grouping) for (outlet, grouping), label in zip(checked, labels)),
            on_error=options.on_error,
            idle_after=options.idle_after,
            keys_in_memory=options.keys_in_memory,
            expire_after=options.expire_after,
            tick_every=options.tick_every,
            buffer=options.buffer,
            window=window,
            chain=bool(options.chain),
        )
        settings = dataclasses.replace(settings, concurrency=check_concurrency(settings, options.concurrency))
        if window is not None and settings.concurrency is not None:
            raise TopologyError(f"{where}: its process is async, which windows do not take; write a plain def")
        why = why_not_on_disk(settings)
        if settings.keys_in_memory is not None and why is not None:
            raise TopologyError(f"{where}: keys_in_memory is for bolts with an object per key: {why}")
        times = [outlet.time if start is None else start.time for (outlet, _), start in zip(checked, starts)]
        settings = with_timers(settings, options, times)
        check_state_clears(settings)
        check_broadcast(settings, options.replicas)
        settings = dataclasses.replace(settings, replicas=check_replicas(settings, options.replicas))
        timed = all(outlet.has_time or start is not None for (outlet, _), start in zip(checked, starts))
        # Which of several replicas' rows go on, and when, follows no watermark.
        passes = timed and settings.replicas == 1 and not (window is not None and window.by_clock)
        unit = self._add(settings, parallelism, streams, timed, passes)
        aheads = [outlet.ahead if start is None else start.ahead for (outlet, _), start in zip(checked, starts)]
        for stream, emitted in unit.streams.items():
            # What a window emits has been believed already, and the window's end as its time may be far ahead when the run ends.
            if emitted.has_time and (window is None or not window.timed or stream == LATE):
                emitted.ahead = _greatest(aheads)
        for i, ((before, grouping), start) in enumerate(zip(checked, starts)):
            outlet = before if start is None else self._start_time(before, f"{before.label}.timed.{name}", start)
            outlet.edges.append(Edge(name, i, grouping))
        return unit

    def add_step(
        self, outlet: OutletDraft, kind: str, function: Callable[[Any], Any], name: str | None, on_error: ErrorPolicy
    ) -> OutletDraft:
        """A function step behind `outlet`, in its unit's process; the stream behind the step."""
        where = f"unit {outlet.unit!r}, {kind}"
        if name is None:
            full, count = f"{outlet.label}.{kind}", 1
            while full in self._steps:
                count += 1
                full = f"{outlet.label}.{kind}-{count}"
        else:
            full = f"{outlet.label}.{check_name(f'{where}: name', name)}"
            where += f" {name!r}"
            if full in self._steps:
                raise TopologyError(f"{where}: behind {outlet.label!r} a step has this name already; choose another")
        check_function(where, function, takes=("the value",), generator=kind == "flat_map")
        step = Step(kind, function, full, check_on_error(where, on_error))
        self._steps.add(full)
        same_values = kind in ("filter", "key_by")
        branch = OutletDraft(
            outlet.unit,
            outlet.label,
            (step,),
            has_time=outlet.has_time,
            time=outlet.time if same_values else None,
            ahead=outlet.ahead,
        )
        outlet.branches.append(branch)
        return branch

    def add_timed(
        self, outlet: OutletDraft, time: Any, lateness: Any, idle: Any, ahead: Any, where: str | None = None
    ) -> OutletDraft:
        """Event time starts behind `outlet`; the stream from there on."""
        start = checked_event_time(where or f"unit {outlet.unit!r}, timed", time, lateness, idle, ahead)
        return self._start_time(outlet, f"{outlet.label}.timed", start)

    def add_combine(self, outlet: OutletDraft, combine: Any) -> OutletDraft:
        """Rows of a batch of `outlet` are combined, which has a time; the stream of what comes of them."""
        step = Step("combine", combine, self._new_step(f"{outlet.label}.combine"))
        branch = OutletDraft(
            outlet.unit, outlet.label, (step,), has_time=outlet.has_time, time=combine.time_of, ahead=outlet.ahead
        )
        outlet.branches.append(branch)
        return branch

    def _new_step(self, name: str) -> str:
        """Return the name for a step, with a number if there is one of this name."""
        full, count = name, 1
        while full in self._steps:
            count += 1
            full = f"{name}-{count}"
        self._steps.add(full)
        return full

    def _start_time(self, outlet: OutletDraft, name: str, start: EventTime) -> OutletDraft:
        step = Step("timed", start.time, self._new_step(name), event_time=start)
        branch = OutletDraft(outlet.unit, outlet.label, (step,), has_time=True, time=start.time, ahead=start.ahead)
        outlet.branches.append(branch)
        return branch

    def add_sink(self, outlet: OutletDraft, name: str, sink: Any) -> None:
        """A sink in the process of the unit that `outlet` belongs to."""
        check_name(f"sink behind unit {outlet.unit!r}", name)
        if name in self._sinks:
            raise TopologyError(
                f"sink {name!r}: {self._sinks[name]} has a sink of this name already; names of sinks are unique"
            )
        sink = examine_sink(sink, name)
        self._check_unused(sink, f"sink {name!r}")
        self._objects[id(sink)] = (f"sink {name!r}", sink)
        self._sinks[name] = f"unit {outlet.unit!r}"
        outlet.sinks.append(SinkPlan(name, sink))

    def plan(self, replicas: bool = True) -> Plan:
        """The whole, checked and frozen; without `replicas` each unit once, however many were asked for."""
        spouts = [name for name, unit in self.units.items() if unit.settings.kind == "spout"]
        if not spouts:
            raise TopologyError(
                f"topology {self.name!r} has no spout, so that no tuple enters it; add one: t.spout('lines', ...)"
            )
        for name in spouts:
            if not any(outlet.sinks or outlet.edges for outlet in self.units[name].outlets):
                raise TopologyError(
                    f"unit {name!r}: nothing takes what this spout reads; give its stream a .bolt(...) or a .sink(...)"
                )
        plans: dict[str, UnitPlan] = {}
        awaited = {name for unit in self.units.values() for name in unit.settings.after}
        for name, unit in reversed(self.units.items()):  # receivers first: ids are wanted from below
            streams = {stream: outlet.freeze() for stream, outlet in unit.streams.items()}
            plan = dataclasses.replace(unit.settings, streams=streams, awaited=name in awaited)
            told = frozenset(t for t in plan.targets if plans[t].watermarks)
            passes = any(_inherits(outlet, told) for outlet in streams.values())
            needs = unit.timed and (passes or plan.timers or (plan.window is not None and plan.window.timed))
            plan = dataclasses.replace(plan, watermarks=needs, watermark_targets=told)
            wants_id = any(s.sink.wants_id for s in plan.sinks) or any(
                plans[t].wants_id or plans[t].replicas > 1 for t in plan.targets
            )
            plans[name] = dataclasses.replace(plan, wants_id=wants_id)
        check_places(sink for plan in reversed(plans.values()) for sink in plan.sinks)
        self._check_moved(plans)
        units = dict(reversed(plans.items()))
        return Plan(self.name, expanded(units) if replicas else units, self.replay_after, self.types, self.moved)

    def _check_moved(self, plans: Mapping[str, UnitPlan]) -> None:
        for old, new in self.moved.items():
            if isinstance(new, str) and new != self.name and new not in plans:
                raise TopologyError(
                    f"topology {self.name!r}: moved says {old!r}: {new!r}, and there is no topology and no unit of that name "
                    f"(units: {', '.join(plans)}); name what there is now, on the right; a class stands there as itself, without quotes"
                )
            if old in plans or old == self.name:
                raise TopologyError(
                    f"topology {self.name!r}: moved says {old!r}: {new!r}, and {old!r} is still there; the old name stands on the left"
                )

    def _add(
        self,
        settings: UnitPlan,
        parallelism: Parallelism,
        streams: tuple[str, ...],
        timed: bool = False,
        has_time: bool = False,
    ) -> UnitDraft:
        name = settings.name
        settings = dataclasses.replace(
            settings,
            parallelism=parallelism.start,
            min_parallelism=parallelism.least,
            max_parallelism=parallelism.most,
        )
        outlets = {"": OutletDraft(name, name, has_time=has_time)}
        self._labels[name] = f"a unit {name!r}"
        for stream in streams:
            label = f"{name}.{stream}"
            outlets[stream] = OutletDraft(name, label, has_time=has_time)
            self._labels[label] = f"the stream {stream!r} of unit {name!r}"
        self.units[name] = UnitDraft(settings, outlets, timed)
        return self.units[name]

    def check_new_units(self, name: object, streams: Sequence[str], before: str) -> None:
        """Raise TopologyError where there cannot be a unit of this name with these streams, and one `before` it."""
        self._check_new_unit(name)
        for stream in check_streams(str(name), streams):
            if f"{name}.{stream}" == before:
                raise TopologyError(
                    f"unit {name!r}: {before!r} is the unit before it; choose another name for the stream {stream!r}"
                )
            self._check_new_label(f"{name}.{stream}", f"unit {name!r}, stream {stream!r}")
        self._check_new_unit(before)

    def _check_new_unit(self, name: object) -> None:
        name = check_name(f"topology {self.name!r}, unit", name)
        self._check_new_label(name, f"unit {name!r}")

    def _check_new_label(self, label: str, where: str) -> None:
        """Names tie state to code over restarts, and tell `process_stream` where a tuple comes from."""
        if label in self._labels:
            raise TopologyError(
                f"{where}: topology {self.name!r} has {self._labels[label]} already; names are unique, choose another"
            )

    def _check_unused(self, thing: object, where: str) -> None:
        if id(thing) in self._objects:
            raise TopologyError(
                f"{where}: this {type(thing).__name__} object is that of {self._objects[id(thing)][0]}; "
                "each place needs an object of its own: make another"
            )


def _inherits(outlet: Outlet, told: frozenset[str]) -> bool:
    """Return whether watermarks go from here to one of `told` that no clock on the way makes."""
    if any(step.kind == "timed" for step in outlet.steps):
        return False
    return any(edge.target in told for edge in outlet.edges) or any(_inherits(b, told) for b in outlet.branches)


def _greatest(aheads: Sequence[float | None]) -> float | None:
    """Return the bound where streams are mixed: None, all, if one of them allows that."""
    known = [ahead for ahead in aheads if ahead is not None]
    return max(known) if len(known) == len(aheads) else None
