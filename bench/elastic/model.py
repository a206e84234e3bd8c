"""The reference model of the elasticity bench, in virtual time: FIFO servers behind a table, scaled by the engine's own policies.

It models the paper's experiment (Zhan et al. 2017; arrivals in bursts of 64, keys uniform over 2 028 words, one FIFO server a sub-unit, 0.3 s
until a new one serves), but the judging is done by the very policy objects that the engine runs, through views.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from esault.elasticity.action import Advise
from esault.elasticity.edit import edited
from esault.elasticity.policy import Policy
from esault.elasticity.view import ProbeSample, Sample, UnitView, View
from esault.messages.probe import KeyLoad
from esault.routing.ring import position
from esault.routing.table import OutputTable
from esault.topology.plan import UnitPlan

__all__ = ["WORDS", "ModelRun", "Shape", "simulate"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: the paper's emitter: words of three letters
WORDS = tuple(a + b + c for a in _LETTERS for b in _LETTERS for c in "abc")


@dataclass(frozen=True)
class Shape:
    """The load of the experiment: up in steps, a plateau, down in steps, a trough. Times in seconds, rates in tuples/s."""

    base: float = 20.0
    step: float = 500.0
    levels: int = 4
    #: all times are divided by this, all rates multiplied
    speed: float = 1.0

    @property
    def cycle(self) -> float:
        """Seconds of one cycle."""
        return (30 + 70 + self.levels * 20 + 70) / self.speed

    def rate(self, t: float) -> float:
        """Tuples a second at `t`."""
        t = t * self.speed % (100 + self.levels * 20 + 70)
        if t < 100:
            return self.speed * (self.base + self.step * min(self.levels, int(t // 10) + 1))
        down = int((t - 100) // 20)
        return self.speed * (self.base + self.step * (self.levels - 1 - down) if down < self.levels else self.base)

    def steps(self, until: float) -> Iterator[tuple[float, float]]:
        """(seconds, rate from then on) up to `until`."""
        last = None
        for i in range(int(until * self.speed / 10) + 1):
            rate = self.rate((i * 10 + 1e-6) / self.speed)
            if rate != last:
                last = rate
                yield i * 10 / self.speed, rate


class _Server:
    """One sub-unit: a FIFO server."""

    def __init__(self, number: int, now: float, serves_at: float) -> None:
        self.number = number
        self.started_at = now
        self.free_at = serves_at
        self.arrived = 0
        self.history: list[tuple[float, int, float]] = []
        self.places: list[int] = []
        self.probes: dict[int, ProbeSample] = {}
        self.fresh: list[ProbeSample] = []
        self.next_probe = 1
        self.counted = 0
        self.probed_at = now
        self.delay: float | None = None

    def backlog(self, now: float, service: float) -> float:
        return max(0.0, self.free_at - now) / service


@dataclass
class ModelRun:
    """What happened: a point for each change, and latencies in seconds by second of arrival."""

    trace: list[tuple[float, int]] = field(default_factory=list)
    started: int = 0
    stopped: int = 0
    reasons: list[str] = field(default_factory=list)
    #: second -> (tuples, sum of latencies, largest)
    seconds: dict[int, list[float]] = field(default_factory=dict)

    def mean(self, second: int) -> float:
        """Mean latency of the tuples of that second."""
        count, total, _ = self.seconds[second]
        return total / count


def simulate(
    policy: Policy | None,
    *,
    shape: Shape | None = None,
    start: int = 2,
    halved: bool = False,
    capacity: float = 560.0,
    seconds: float = 500.0,
    seed: int = 1,
    burst: int = 64,
    slots: int = 16,
    boot: float = 0.3,
    tick: float = 0.1,
    net: float = 0.001,
    window: float = 0.5,
) -> ModelRun:
    """Run the load through the model; `policy` None keeps the first number of servers."""
    shape = shape or Shape()
    order = random.Random(seed)
    service = 1.0 / capacity
    places = [position(word) for word in WORDS]
    numbers = list(range(1, start + 1))
    table = (OutputTable.halved if halved else OutputTable.even)(numbers)
    servers = {i: _Server(i, 0.0, 0.0) for i in numbers}
    run = ModelRun([(0.0, start)])
    pending: tuple[float, OutputTable, dict[int, _Server]] | None = None
    changed_at: float | None = None
    last_number = start
    plan = UnitPlan("count", "bolt", objects="key", max_parallelism=slots)
    t = next_tick = 0.0
    starts, owners = _flat(table)
    while True:
        t += order.expovariate(max(1e-9, shape.rate(t) / burst))
        while next_tick <= min(t, seconds):
            now, next_tick = next_tick, next_tick + tick
            if pending is not None and now >= pending[0]:
                run.started += len(pending[2].keys() - servers.keys())
                run.stopped += len(servers.keys() - pending[2].keys())
                _, table, servers = pending
                starts, owners = _flat(table)
                run.trace.append((now, len(servers)))
                pending, changed_at = None, now
                for server in servers.values():
                    server.places.clear()
            view = _view(servers, table, plan, now, service, tick, net, pending is not None, changed_at, slots, window)
            actions = [] if policy is None else list(policy.decide(view))
            wanted = [a for a in actions if not isinstance(a, Advise)]
            if wanted and pending is None:
                edit = edited(table, wanted, view.unit.samples)
                news = {-1 - i: last_number + 1 + i for i in range(edit.news)}
                last_number += edit.news
                after = edit.table.copy()
                for old, new in news.items():
                    after.replace(old, new)
                grown = {o: servers.get(o) or _Server(o, now + boot, now + boot) for o in after.owners()}
                run.reasons.append(f"{now:.1f}: {len(servers)} -> {len(grown)}: {wanted[0].reason}")
                pending = (now + (boot if news else 0.0), after, grown)
        if t >= seconds:
            return run
        for _ in range(burst):
            place = order.choice(places)
            server = servers[owners[bisect_right(starts, place) - 1]]
            server.arrived += 1
            if len(server.places) < 2048:
                server.places.append(place)
            else:
                server.places[server.arrived % 2048] = place
            server.free_at = max(server.free_at, t) + service
            latency = server.free_at - t + net
            second = run.seconds.setdefault(int(t), [0, 0.0, 0.0])
            second[0] += 1
            second[1] += latency
            second[2] = max(second[2], latency)


def _flat(table: OutputTable) -> tuple[list[int], list[int]]:
    pairs = table.snapshot()[1]
    return [low for low, _ in pairs], [owner for _, owner in pairs]


def _view(
    servers: dict[int, _Server],
    table: OutputTable,
    plan: UnitPlan,
    now: float,
    service: float,
    tick: float,
    net: float,
    changing: bool,
    changed_at: float | None,
    slots: int,
    window: float,
) -> View:
    samples = []
    for owner in table.owners():
        server = servers[owner]
        backlog = server.backlog(now, service)
        processed = server.arrived - backlog
        server.history.append((now, server.arrived, processed))
        while len(server.history) > 2 and server.history[1][0] <= now - window:
            server.history.pop(0)
        before = server.history[0]
        length = max(1e-9, now - before[0])
        fresh = []
        for number, probe in list(server.probes.items()):
            if probe.back is not None and probe.back <= now:
                fresh.append(server.probes.pop(number))
                server.delay = probe.back - probe.sent
        rate = (server.arrived - server.counted) / max(1e-9, now - server.probed_at)
        server.counted, server.probed_at = server.arrived, now
        probe = ProbeSample(server.next_probe, now, now + backlog * service + 2 * net, rate)
        server.next_probe += 1
        server.probes[probe.number] = probe
        fresh.append(ProbeSample(probe.number, now))
        samples.append(
            Sample(
                owner,
                tuple(table.ranges(owner)),
                age=now - server.started_at,
                window=length if length > 1e-6 else 0.0,
                arrivals=(server.arrived - before[1]) / length,
                processed=(processed - before[2]) / length,
                busy=(processed - before[2]) * service / length,
                backlog=int(backlog),
                probe_delay=server.delay,
                probes=tuple(fresh),
                key_load=KeyLoad.of(server.places, str),
            )
        )
    unit = UnitView("count", plan, tuple(samples), changing, changed_at)
    return View(now, now, {"count": unit}, free_slots=slots - len(servers), unit=unit)


def summary(run: ModelRun, seconds: float) -> dict[str, Any]:
    """Share of seconds below 100 ms, time-average parallelism, largest latency, sub-units started and stopped."""
    means = [run.mean(s) for s in run.seconds]
    ends = [*run.trace[1:], (seconds, 0)]
    average = sum(n * (end[0] - at) for (at, n), end in zip(run.trace, ends)) / seconds
    return {
        "below": sum(m < 0.1 for m in means) / len(means),
        "average": average,
        "worst_ms": 1000 * max(each[2] for each in run.seconds.values()),
        "started": run.started,
        "stopped": run.stopped,
        "most": max(n for _, n in run.trace),
        "least": min(n for _, n in run.trace),
    }
