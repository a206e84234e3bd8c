"""The fluid model in which migration policies are compared, in virtual time.

After chapter 4 of Sousa's dissertation (2014): 13 workers with two active copies each on 6 nodes of 4 cores, which
the copies on a node share max-min fairly. An event costs a fixed time, queues have no bound, and a copy that moves
stands still for its last second. Every second each copy reports its mean latency. Who decides what moves is a
function of its own (deciders.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from esault.sim.loads import WORKERS

__all__ = [
    "CORES", "MEMORY", "NETWORK", "NODES", "PLACES", "REPLICAS", "ROUND", "SCHEDULE", "Decider", "Figures", "Look", "Move",
    "Replica", "Report", "p99", "rate", "run", "share",
]  # fmt: skip

#: worker -> its ten cycles of 60 s, high or low (tables A.2 to A.14)
SCHEDULE = dict(enumerate(WORKERS, 1))
#: events a second in a low cycle, and always under the stable load (table A.1); in a high one 500 more
LOW = {w: 100 if w % 2 else 50 for w in SCHEDULE}
HIGHER = 500
CYCLE, SECONDS = 60, 600
NODES = (6, 7, 8, 9, 10, 11)
#: (worker, copy)
REPLICAS = [(w, k) for w in SCHEDULE for k in (0, 1)]
#: the first placement (table 4.4)
PLACES = {(w, k): 6 + (w - 1 + k) % 6 for w, k in REPLICAS}
CORES = 4.0
#: seconds an event: so that without migrations latencies are about those that the dissertation measured
COST = 0.00172
#: events a second that are a full network; share of a node's memory that a copy takes
NETWORK, MEMORY = 1e4, 0.05
#: seconds: of a step; from one round to the next; that a move takes; that the copy stands still
STEP, ROUND, MOVE, PAUSE = 0.05, 10, 2.0, 1.0
#: spread of reported latencies (of the logarithm) and of rates
NOISE, JITTER = 0.10, 0.05
#: points a second at which latencies are taken
POINTS = 10

Replica = tuple[int, int]
#: when, who, where to
Move = tuple[float, Replica, int]


def rate(t: float, worker: int, varied: bool = True, ramp: float = 10.0) -> float:
    """Events a second that are offered to each copy; the varied load goes from cycle to cycle in `ramp` seconds."""
    if not varied:
        return LOW[worker]
    cycle = min(SECONDS // CYCLE - 1, int(t // CYCLE))
    level: Callable[[int], int] = lambda i: LOW[worker] + (HIGHER if SCHEDULE[worker][i] == "H" else 0)
    now, before = level(cycle), level(cycle - 1) if cycle else LOW[worker]
    part = (t - CYCLE * cycle) / ramp if ramp else 1.0
    return now if part >= 1 else before + (now - before) * part


def share(wanted: Mapping[int, float], capacity: float) -> dict[int, float]:
    """Max-min fair: none gets more than it wants, and one that gets less gets as much as any."""
    got: dict[int, float] = {}
    left, rest = capacity, sorted(wanted, key=lambda i: wanted[i])
    while rest:
        fair, i = left / len(rest), rest[0]
        if wanted[i] > fair:
            got.update(dict.fromkeys(rest, fair))
            break
        got[i] = wanted[i]
        left -= wanted[i]
        rest.pop(0)
    return got


class Report(NamedTuple):
    """One copy in one second."""

    #: mean seconds; None where nothing was processed
    latency: float | None
    #: processors, and events
    busy: float
    done: float


@dataclass(frozen=True)
class Look:
    """The measurements at the end of a second."""

    now: float
    reports: Mapping[Replica, Report]
    place: Mapping[Replica, int]
    #: copies on their way
    moving: frozenset[Replica]
    #: when each copy's last move ended
    moved_at: Mapping[Replica, float]
    #: when the last move of all ended; None before the first
    ended: float | None


class Decider(Protocol):
    """Says which copies go where, every second."""

    def __call__(self, look: Look) -> list[tuple[Replica, int]]:
        """Return what to begin now."""
        ...


def p99(latencies: Any, weights: Any = None) -> float:
    """The 99th percentile: of n the floor(99 (n + 1) / 100)th (4.3). `weights`: how many each stands for."""
    latencies = np.asarray(latencies, dtype=float)
    order = np.argsort(latencies)
    total = np.cumsum(np.ones(len(order)) if weights is None else weights[order])
    return float(latencies[order][np.searchsorted(total, 0.99 * total[-1])])


class Figures(NamedTuple):
    """One run. Of a worker's two copies the fast one has the lower mean latency; pooled over the workers, in ms."""

    fast_mean: float
    fast_p99: float
    slow_mean: float
    slow_p99: float
    #: of the copy of each worker that processed more
    events: float
    migrations: int


@dataclass
class _Latencies:
    """Of one copy: how many events each of POINTS latencies stands for, second by second."""

    weights: list[float] = field(default_factory=list)
    seconds: list[Any] = field(default_factory=list)


def run(decide: Decider | None, seed: int = 0, varied: bool = True, trace: list[Move] | None = None) -> Figures:
    """600 s of the load; `decide` None: nothing is moved. `trace` is filled with what was moved."""
    noise = np.random.default_rng(seed)
    n, per = len(REPLICAS), round(1 / STEP)
    steps = SECONDS * per
    jitter = noise.normal(1, JITTER, size=(SECONDS, len(SCHEDULE) + 1)).clip(0.7, 1.3)  # one for both copies
    factors = np.repeat(jitter.T[list(SCHEDULE)], per, axis=1)
    offered = np.repeat(_rates(varied) * factors * STEP, 2, axis=0)  # replica, step
    come = np.hstack([np.zeros((n, 1)), np.cumsum(offered, axis=1)])
    gone = np.zeros_like(come)
    times = np.arange(steps + 1) * STEP
    queue, place = np.zeros(n), dict(PLACES)
    node_of = np.array([NODES.index(place[r]) for r in REPLICAS])
    seen = [_Latencies() for _ in REPLICAS]
    busy = np.zeros(n)
    #: (who, when it ends, where to)
    moving: list[tuple[Replica, float, int]] = []
    moved_at: dict[Replica, float] = {}
    ended: float | None = None
    migrations = 0
    for k in range(steps):
        t = k * STEP
        for move in [m for m in moving if t >= m[1]]:
            moving.remove(move)
            place[move[0]], moved_at[move[0]] = move[2], t
            node_of[REPLICAS.index(move[0])] = NODES.index(move[2])
            if not moving:
                ended = t
        queue += offered[:, k]
        wanted = np.minimum(CORES * STEP, queue * COST)
        for replica, until, _ in moving:
            if t >= until - PAUSE:
                wanted[REPLICAS.index(replica)] = 0.0
        got = _shared(wanted, node_of)
        out = got / COST
        queue = np.maximum(queue - out, 0)
        gone[:, k + 1] = gone[:, k] + out
        busy += got
        if (k + 1) % per:
            continue
        reports = {}
        for i, replica in enumerate(REPLICAS):
            latency = _latencies(come[i], gone[i], times, k, per)
            done = float(gone[i, k + 1] - gone[i, k + 1 - per])
            if latency is not None:
                latency = (latency + COST + 0.001) * float(np.exp(noise.normal(0, NOISE)))
                seen[i].weights.append(done)
                seen[i].seconds.append(latency)
            reports[replica] = Report(None if latency is None else float(latency.mean()), float(busy[i]), done)
        busy[:] = 0
        now = (k + 1) * STEP
        if decide is None:
            continue
        on_way = frozenset(m[0] for m in moving)
        for replica, target in decide(Look(now, reports, dict(place), on_way, dict(moved_at), ended)):
            moving.append((replica, now + MOVE, target))
            migrations += 1
            if trace is not None:
                trace.append((now, replica, target))
    return _figures(seen, gone[:, -1], migrations)


@cache
def _rates(varied: bool) -> Any:
    """By worker and step."""
    steps = SECONDS * round(1 / STEP)
    return np.array([[rate((k + 0.5) * STEP, w, varied) for k in range(steps)] for w in SCHEDULE])


def _shared(wanted: Any, node_of: Any) -> Any:
    """Return what each copy gets of its node in a step; only nodes that are full have anything to share."""
    got = wanted.copy()
    for node in np.flatnonzero(np.bincount(node_of, wanted, len(NODES)) > CORES * STEP):
        here = {int(i): float(wanted[i]) for i in np.flatnonzero(node_of == node)}
        for i, amount in share(here, CORES * STEP).items():
            got[i] = amount
    return got


def _latencies(come: Any, gone: Any, times: Any, k: int, per: int) -> Any:
    """Seconds from coming to leaving at points spread over what left in this second; None when nothing did."""
    first, last = gone[k + 1 - per], gone[k + 1]
    if last - first <= 1e-9:
        return None
    at = first + (last - first) * (np.arange(POINTS) + 0.5) / POINTS
    left = np.interp(at, gone[k + 1 - per : k + 2], times[k + 1 - per : k + 2])
    return np.maximum(left - np.interp(at, come[: k + 2], times[: k + 2]), 0)


def _figures(seen: Sequence[_Latencies], gone: Any, migrations: int) -> Figures:
    def pooled(which: Sequence[int]) -> tuple[float, float]:
        weights = np.concatenate([np.repeat(np.array(seen[i].weights) / POINTS, POINTS) for i in which])
        latencies = np.concatenate([np.concatenate(seen[i].seconds) for i in which])
        return 1e3 * float((weights * latencies).sum() / weights.sum()), 1e3 * p99(latencies, weights)

    fast, slow = [], []
    for i in range(0, len(REPLICAS), 2):
        a, b = sorted((i, i + 1), key=lambda j: pooled([j])[0])
        fast.append(a)
        slow.append(b)
    events = float(sum(max(gone[i], gone[i + 1]) for i in range(0, len(REPLICAS), 2)))
    return Figures(*pooled(fast), *pooled(slow), events, migrations)
