"""Deciders for the model of bench/policies/migration/model.py.

`Reference` is the text of Sousa's dissertation as plain code. `Ours` asks a policy object, the very one that a run
would use, through views. Both are told the same figures, and should want the same moves.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from bench.policies.migration.model import CORES, MEMORY, NETWORK, NODES, REPLICAS, ROUND, SCHEDULE, Look, Replica
from esault.elasticity.action import Migrate
from esault.elasticity.policy import TopologyPolicy
from esault.elasticity.view import RunView, Sample, UnitView
from esault.messages.probe import HostUsage
from esault.topology.plan import UnitPlan

__all__ = ["Ours", "Reference", "degradation", "feasible", "plan_round", "random_candidates", "rank_candidates"]


def degradation(latencies: Sequence[float], d: float) -> float:
    """(3.2)."""
    if len(latencies) < 2 or latencies[0] <= 0:
        return 0.0
    return sum(b - a for a, b in pairwise(latencies) if b > a + d * a) / latencies[0]


def rank_candidates(history: Mapping[Any, Sequence[float]], last_migration: Mapping[Any, float], d: float) -> list[Any]:
    """(3.3) Growing ones, worst first; of equals who was migrated longest ago."""
    s = {r: degradation(latencies, d) for r, latencies in history.items()}
    return sorted((r for r in s if s[r] > 0), key=lambda r: (-s[r], last_migration.get(r, float("-inf")), str(r)))


def random_candidates(replicas: Iterable[Any], rng: random.Random, p: float = 0.5) -> list[Any]:
    """The baseline."""
    chosen = [r for r in replicas if rng.random() < p]
    rng.shuffle(chosen)
    return chosen


def feasible(
    u_dst: Mapping[str, float], u_x: Mapping[str, float], u_src: Mapping[str, float], tol: float = 1e-9
) -> bool:
    """(3.5) and (3.6)."""
    difference = [u_dst[r] + u_x[r] - u_src[r] for r in u_src]
    return any(v < -tol for v in difference) and not any(v > tol for v in difference)


def plan_round(
    candidates: Iterable[Any],
    place: Mapping[Any, Any],
    op_of: Mapping[Any, Hashable],
    usage: Mapping[Any, Mapping[str, float]],
    nodes: Sequence[Any],
    l_mig: int = 1,
) -> list[tuple[Any, Any, Any]]:
    """3.2.4, greedily: (replica, source, destination). `l_mig` 0: no limit."""
    resources = next(iter(usage.values())).keys()
    place = dict(place)
    load = {n: {k: sum(usage[r][k] for r in place if place[r] == n) for k in resources} for n in nodes}
    plan: list[tuple[Any, Any, Any]] = []
    for x in candidates:
        if l_mig and len(plan) >= l_mig:
            break
        src, ok = place[x], []
        for n in nodes:
            if n == src or any(place[y] == n and op_of[y] == op_of[x] for y in place if y != x):
                continue
            if feasible(load[n], usage[x], load[src]):
                ok.append(n)
        if ok:
            dst = min(ok, key=lambda n: (max(load[n].values()), str(n)))
            for k in resources:
                load[dst][k] += usage[x][k]
                load[src][k] -= usage[x][k]
            place[x] = dst
            plan.append((x, src, dst))
    return plan


class Reference:
    """The dissertation's rounds; `d` None: random candidates."""

    def __init__(self, d: float | None, limit: int, memory: bool = True, seed: int = 0) -> None:
        self._d, self._limit, self._memory = d, limit, memory
        self._rng = random.Random(seed)
        self._next_round = float(ROUND)
        self._seen: float | None = None
        self._clear()

    def _clear(self) -> None:
        self._history: dict[Replica, list[float]] = {r: [] for r in REPLICAS}
        self._busy, self._done = dict.fromkeys(REPLICAS, 0.0), dict.fromkeys(REPLICAS, 0.0)
        self._seconds = 0

    def __call__(self, look: Look) -> list[tuple[Replica, int]]:
        if look.ended != self._seen:  # rounds resume after the last migration
            self._seen = look.ended
            assert look.ended is not None
            self._next_round = look.ended + ROUND
            self._clear()
        self._seconds += 1
        for r, report in look.reports.items():
            self._busy[r] += report.busy
            self._done[r] += report.done
            if report.latency is not None:
                self._history[r].append(report.latency)
        if look.moving or look.now < self._next_round - 1e-9:
            return []
        memory = {"ram": MEMORY} if self._memory else {}
        use = {
            r: {"cpu": self._busy[r] / self._seconds / CORES, "net": self._done[r] / self._seconds / NETWORK, **memory}
            for r in REPLICAS
        }
        candidates = (
            random_candidates(REPLICAS, self._rng)
            if self._d is None
            else rank_candidates(self._history, look.moved_at, self._d)
        )
        plan = plan_round(candidates, look.place, {r: r[0] for r in REPLICAS}, use, NODES, self._limit)
        self._clear()
        self._next_round = look.now + ROUND
        return [(r, destination) for r, _, destination in plan]


class Ours:
    """A policy of the engine, asked through views.

    A unit for each worker, whose two sub-units are copies of one range.
    """

    #: bytes of a node
    _TOTAL = 2 << 30

    def __init__(self, policy: TopologyPolicy) -> None:
        self.policy = policy
        self.reasons: list[str] = []
        self._plans = {w: UnitPlan(f"worker {w}", "bolt", max_parallelism=1) for w in SCHEDULE}
        self._hosts = tuple(HostUsage(f"VM{n}", int(CORES), memory_total=self._TOTAL) for n in NODES)

    def __call__(self, look: Look) -> list[tuple[Replica, int]]:
        units = {}
        for w, plan in self._plans.items():
            pair = [(w, 0), (w, 1)]
            changed = max((look.moved_at[r] for r in pair if r in look.moved_at), default=None)
            samples = tuple(self._sample(r, look) for r in pair)
            units[plan.name] = UnitView(plan.name, plan, samples, any(r in look.moving for r in pair), changed)
        view = RunView(look.now, look.now, units, self._hosts, len(REPLICAS), tuple(units))
        by_number = {s.sub_unit: (w, s.replica) for w, plan in self._plans.items() for s in units[plan.name].samples}
        wanted = []
        for action in self.policy.decide(view):
            if isinstance(action, Migrate):
                self.reasons.append(f"{look.now:.0f}: {action.unit}, {action.reason}")
                wanted.append((by_number[action.sub_unit], int(action.host[2:])))
        return wanted

    def _sample(self, replica: Replica, look: Look) -> Sample:
        latency, busy, done = look.reports[replica]
        worker, copy = replica
        return Sample(
            # What was moved is another sub-unit, as in the engine.
            worker * 10_000 + copy * 1000 + int(look.moved_at.get(replica, 0.0)),
            ((0, 2**32 - 1),),
            f"VM{look.place[replica]}",
            copy,
            age=look.now,
            window=1.0,
            # The queue is the channel: what was read from it was processed.
            arrivals=done,
            processed=done,
            emitted=done,
            busy=min(1.0, busy),
            latency=latency,
            cpu=busy,
            memory=round(MEMORY * self._TOTAL),
        )
