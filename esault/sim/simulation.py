"""The virtual clock: steps of flow, ticks of the engine's own judges and policies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from esault.elasticity.judge import DecisionRecord
from esault.elasticity.objective import ObjectiveStatus
from esault.elasticity.policy import Policy
from esault.elasticity.scaling import EVERY_UNIT, Scaling
from esault.errors import UsageError
from esault.messages.change_record import ChangeRecord
from esault.messages.probe import HostUsage
from esault.sim.latencies import Latencies
from esault.sim.model import Model, Source
from esault.sim.modelled_source import ModelledSource
from esault.sim.modelled_unit import ModelledUnit
from esault.sim.samples import ModelledSamples
from esault.sim.station import Parcel, Station
from esault.topology.plan import Plan

__all__ = ["OperatorRun", "Run", "simulate"]


@dataclass
class OperatorRun:
    """The course of one operator. Times are seconds since the start."""

    #: (when, sub-units that serve from then on)
    trace: list[tuple[float, int]]
    changes: list[ChangeRecord] = field(default_factory=list)
    arrived: float = 0.0
    processed: float = 0.0
    dropped: float = 0.0
    #: seconds of service, and seconds for which sub-units existed
    busy: float = 0.0
    worker_seconds: float = 0.0
    #: waiting at the end
    waiting: float = 0.0
    #: a sample each second: (when, arrivals/s, processed/s, waiting)
    series: list[tuple[float, float, float, float]] = field(default_factory=list)

    @property
    def utilisation(self) -> float:
        """Share of its sub-units' time that was spent processing."""
        return self.busy / self.worker_seconds if self.worker_seconds else 0.0

    @property
    def started(self) -> int:
        """Sub-units that changes started."""
        return sum(max(0, c.after - c.before) for c in self.changes)

    @property
    def stopped(self) -> int:
        """Sub-units that changes stopped."""
        return sum(max(0, c.before - c.after) for c in self.changes)


@dataclass
class Run:
    """The course of a simulated run."""

    seconds: float
    operators: dict[str, OperatorRun]
    #: from when a tuple was due to its end at an operator that sends to no other
    latency: Latencies
    offered: float = 0.0
    read: float = 0.0
    #: due and not read at the end
    lag: float = 0.0
    decisions: list[DecisionRecord] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    objectives: tuple[ObjectiveStatus, ...] = ()

    @property
    def worker_seconds(self) -> float:
        """Of all operators."""
        return sum(o.worker_seconds for o in self.operators.values())

    @property
    def changes(self) -> int:
        """Of all operators."""
        return sum(len(o.changes) for o in self.operators.values())

    @property
    def dropped(self) -> float:
        """Tuples, at all operators."""
        return sum(o.dropped for o in self.operators.values())


def simulate(
    model: Model,
    policy: str | Policy | None = "none",
    *,
    seconds: float,
    seed: int = 1,
    policies: Mapping[str, str | Policy | None] | None = None,
    step: float = 0.02,
    tick: float = 0.1,
    objectives: Sequence[str] = (),
    budget: int | None = None,
) -> Run:
    """Run the model for so many seconds of its own time.

    `policy` scales all operators (a spec as on the command line, an object, None or "none"), `policies` names others by operator.
    `step`: seconds in which flow is uniform, and the grain of latencies; `tick`: seconds between two looks of the judges.
    `objectives`: as for `esault run --objective`, end to end; `budget`: the most sub-units at any time, one for each source among them.
    Raises UsageError for what cannot be.
    """
    if not (0 < step <= tick and seconds > 0):
        raise UsageError(f"0 < step {step:g} <= tick {tick:g} and seconds {seconds:g} > 0 must hold")
    chosen = {EVERY_UNIT: policy, **(policies or {})}
    return _Simulation(model, chosen, seed, step, tick, objectives, budget).run(seconds)


class _Simulation:
    def __init__(
        self,
        model: Model,
        policies: dict[str, str | Policy | None],
        seed: int,
        step: float,
        tick: float,
        objectives: Sequence[str],
        budget: int | None,
    ) -> None:
        self.model = model
        self._budget = budget
        self.step, self.tick = step, tick
        numbers = count(1)
        self.notices: list[str] = []
        halved = {
            p.name
            for p in model.operators
            if str(policies.get(p.name, policies[EVERY_UNIT])).partition(":")[0] == "esault"
        }
        self.parts: dict[str, ModelledUnit | ModelledSource] = {}
        sending = {name for part in model.operators for name in part.senders}
        for part in model.parts:
            if isinstance(part, Source):
                self.parts[part.name] = ModelledSource(part, next(numbers), seed)
            else:
                # What comes to its end is counted there as it goes in, whatever is put out beyond.
                last = part if part.name in sending else replace(part, selectivity=1.0)
                self.parts[part.name] = ModelledUnit(
                    last, model.timing, list(model.hosts), lambda: next(numbers), part.name in halved, self._changed
                )
        self.samples = ModelledSamples(model.timing.net, seed, model.timing.reported)
        plan = Plan("model", {name: part.plan for name, part in self.parts.items()})
        self.scaling = Scaling(
            plan,
            policies,
            tick,
            self.notices.append,
            objectives=objectives,
            samples=self.samples,
            slack=model.timing.reported,
            latencies=self.samples.latencies,
        )
        self.units = {n: p for n, p in self.parts.items() if isinstance(p, ModelledUnit)}
        self.sources = {n: p for n, p in self.parts.items() if isinstance(p, ModelledSource)}
        self.senders = {n: u.part.senders for n, u in self.units.items()}
        self.ends = {n for n in self.units if not any(n in s for s in self.senders.values())}
        self.latency = Latencies()
        self.runs = {n: OperatorRun([(0.0, u.width)]) for n, u in self.units.items()}
        self._cpu_used: dict[str, float] = {}
        self._looked = 0.0
        self._last: dict[str, tuple[float, float]] = dict.fromkeys(self.units, (0.0, 0.0))

    def _changed(self, name: str, record: ChangeRecord) -> None:
        self.runs[name].changes.append(record)
        self.scaling.changed(name, record)

    def run(self, seconds: float) -> Run:
        steps = math.ceil(seconds / self.step - 1e-9)
        per_tick = max(1, round(self.tick / self.step))
        per_second = max(1, round(1.0 / self.step))
        late = self.model.timing.reported > 0
        bounded = any(s.part.max_pending is not None for s in self.sources.values())
        self.samples.note(self.parts, 0.0)
        self.scaling.decide(self.parts, 0.0, 0.0, self._hosts(0.0), self._free, self._budget)
        for i in range(1, steps + 1):
            now = i * self.step
            flying = sum(u.waiting + u.on_line for u in self.units.values()) if bounded else 0.0
            self._flow(now, flying)
            # As in the engine a window is looked at as soon as its reports are there, not at the tick after that.
            if i % per_tick == 0 or (late and now >= self.scaling.next_look - 1e-9):
                self.samples.note(self.parts, now)
                self.scaling.decide(self.parts, now, now, self._hosts(now), self._free, self._budget)
            if i % per_second == 0:
                self._note_second(now)
        return self._result(seconds)

    def _flow(self, now: float, flying: float) -> None:
        length = self.step
        outs: dict[str, list[Parcel]] = {n: s.step(now, length, flying) for n, s in self.sources.items()}
        self._share_processors()
        for name, unit in self.units.items():
            senders = self.senders[name]
            inflow = outs[senders[0]] if len(senders) == 1 else [p for s in senders for p in outs[s]]
            before = unit.width
            out = outs[name] = unit.step(now, length, inflow)
            run = self.runs[name]
            run.worker_seconds += len(unit.started) * length
            if unit.width != before:
                run.trace.append((now, unit.width))
            if out and name in self.ends:
                for born, amount in out:
                    ended = amount / (unit.part.selectivity or 1.0)
                    self.latency.add(now, now - born, ended)
                    if self.scaling.objectives:
                        self.samples.ended(now - born, ended)

    def _share_processors(self) -> None:
        """Max-min fair shares on each host, from what stations wanted when the step began."""
        wants: dict[str, list[tuple[float, float, Station]]] = {}
        for unit in self.units.values():
            for station, want in unit.wants(self.step):
                wants.setdefault(station.host if not unit.pooled else self.model.hosts[0].name, []).append(
                    (want, station.servers, station)
                )
        for host in self.model.hosts:
            left = host.cores * self.step
            if sum(w * n for w, n, _ in wants.get(host.name, ())) <= left:
                for _, _, station in wants.get(host.name, ()):
                    station.level = float("inf")
                continue
            order = sorted(wants[host.name], key=lambda w: w[0])
            many = sum(n for _, n, _ in order)
            for want, n, station in order:
                level = left / many
                station.level = min(want, level) if want > level else float("inf")
                left -= min(want, level) * n
                many -= n

    def _hosts(self, now: float) -> tuple[HostUsage, ...]:
        found = []
        length, self._looked = (now - self._looked) or self.tick, now
        for host in self.model.hosts:
            used = 0.0
            for unit in self.units.values():
                for station in unit.stations.values():
                    if unit.pooled or station.host == host.name:
                        used += station.busy * unit.part.cpu
            before = self._cpu_used.get(host.name, 0.0)
            self._cpu_used[host.name] = used
            share = max(0.0, used - before) / length / host.cores
            found.append(HostUsage(host.name, math.ceil(host.cores), min(1.0, share)))
        return tuple(found)

    def _free(self) -> int:
        started = sum(len(u.started) for u in self.units.values())
        left = math.inf if self._budget is None else max(0, self._budget - len(self.sources) - started)
        return min(self.model.slots - started, int(left) if left < math.inf else self.model.slots)

    def _note_second(self, now: float) -> None:
        for name, unit in self.units.items():
            arrived, processed, *_ = unit.counted()
            before = self._last[name]
            self.runs[name].series.append((now, arrived - before[0], processed - before[1], unit.waiting))
            self._last[name] = (arrived, processed)

    def _result(self, seconds: float) -> Run:
        for name, run in self.runs.items():
            unit = self.units[name]
            run.arrived, run.processed, _, run.dropped, run.busy = unit.counted()
            run.waiting = unit.waiting
        return Run(
            seconds,
            self.runs,
            self.latency,
            sum(s.offered for s in self.sources.values()),
            sum(s.read for s in self.sources.values()),
            sum(s.lag for s in self.sources.values()),
            [replace(d) for d in self.scaling.log],
            self.notices,
            self.scaling.objectives.statuses,
        )
