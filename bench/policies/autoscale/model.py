"""The reference model of AUTOSCALE: source -> intermediate -> sink in discrete events, judged by a reading of the paper of its own.

It shares no code with the engine's policy `autoscale`, so that the two can be held against each other. What it models: Poisson
arrivals whose rate changes every second, FIFO queues with as many servers as the degree, constant service, a time-out after
which a tuple is emitted again, decisions that take effect at once.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["END", "Figures", "arrivals", "decide", "rate", "simulate"]

#: seconds of the paper's stream, as this bench sets it
END = 2220
#: seconds between which the stream is at its peak and the ramp is over
PLATEAU = (720, 1500)
#: the controller stops here when replays grow without bound
MOST_EVENTS = 3_000_000

NOTHING, IN, OUT = "nothing", "scale-in", "scale-out"
RANK = {NOTHING: 0, IN: 1, OUT: 2}
#: table 1: (activity, arrivals increase)
LOCAL = {
    ("low", False): IN,
    ("low", True): NOTHING,
    ("normal", False): NOTHING,
    ("normal", True): NOTHING,
    ("strong", False): NOTHING,
    ("strong", True): OUT,
    ("critical", False): OUT,
    ("critical", True): OUT,
}


def rate(t: float) -> float:
    """Tuples a second: low, an exponential rise, a plateau, steps down, low."""
    for end, r in ((300, 4.0), (600, 0.0), (1500, 140.0), (1620, 100.0), (1740, 60.0), (1860, 30.0), (2220, 4.0)):
        if t < end:
            return r or 4.0 * 35 ** ((t - 300) / 300)
    return 0.0


def arrivals(seed: int, end: int = END, noise: float = 0.2, of: Callable[[float], float] = rate) -> list[float]:
    """Instants of arrival: each second's rate is off by up to `noise`, and Poisson within."""
    generator, instants = random.Random(seed), []
    for second in range(end):
        r, t = of(second) * generator.uniform(1 - noise, 1 + noise), float(second)
        while r > 0:
            t += generator.expovariate(r)
            if t >= second + 1:
                break
            instants.append(t)
    return instants


def _line(instants: Sequence[float], counts: Sequence[float]) -> tuple[float, float]:
    n = len(instants)
    mt, my = sum(instants) / n, sum(counts) / n
    a = sum((t - mt) * (y - my) for t, y in zip(instants, counts)) / sum((t - mt) ** 2 for t in instants)
    return a, my - a * mt


def _degree(action: str, degree: int, activity: float, most: int) -> int:
    if action == NOTHING:
        return degree
    wanted = degree + 1 if action == OUT and activity <= 1 else math.ceil(degree * activity - 1e-9)
    wanted = min(most, wanted)
    return max(degree, wanted) if action == OUT else max(1, min(degree, wanted))


def decide(
    order: Sequence[str],
    senders: Mapping[str, Sequence[str]],
    measures: Mapping[str, Mapping[str, Any]],
    delta: float,
    theta: tuple[float, float] = (0.4, 0.8),
    mode: str = "extrapolate",
) -> dict[str, tuple[float, int]]:
    """Activity and new degree of each operator. `measures`: ts, counts, backlog, latency, degree, most."""
    result: dict[str, tuple[float, int]] = {}
    final: dict[str, str] = {}
    for name in order:
        m = measures[name]
        a, b = _line(m["ts"], m["counts"])
        shift = delta if mode == "extrapolate" else 0.0
        expected = sum(max(0.0, a * (t + shift) + b) for t in m["ts"])
        activity = (expected + m["backlog"]) * m["latency"] / (m["degree"] * delta)
        band = "low" if activity <= theta[0] else "normal" if activity <= theta[1] else "strong"
        local = LOCAL["critical" if activity > 1 else band, a > 0]
        above = max((final[s] for s in senders.get(name, ())), key=RANK.__getitem__, default=NOTHING)
        # table 2 in words: under a scale-out a scale-in waits and an idle operator goes with it
        final[name] = {NOTHING: OUT, IN: NOTHING, OUT: OUT}[local] if above == OUT else local
        result[name] = activity, _degree(final[name], m["degree"], activity, m["most"])
    return result


@dataclass
class Figures:
    """The figures of a run. Latencies in seconds, by the instant at which the tuple was done."""

    latencies: list[tuple[float, float]] = field(default_factory=list)
    #: tuples that were not done in time, each emission counted
    late: int = 0
    #: integral of the tasks of both operators
    task_seconds: float = 0.0
    #: (at, operator, before, after)
    actions: list[tuple[float, str, int, int]] = field(default_factory=list)
    #: where it was stopped
    until: float = 0.0
    emissions: int = 0

    @property
    def mean(self) -> float:
        """Mean latency."""
        return sum(v for _, v in self.latencies) / max(1, len(self.latencies))

    @property
    def plateau(self) -> float | None:
        """Mean latency on the plateau; None where nothing was in time."""
        there = [v for t, v in self.latencies if PLATEAU[0] <= t < PLATEAU[1]]
        return sum(there) / len(there) if there else None

    @property
    def last_on_time(self) -> float:
        """Return when the last tuple was done in time."""
        return max((t for t, _ in self.latencies), default=0.0)


def simulate(
    degrees: tuple[int, int],
    scaled: bool,
    seed: int = 1,
    delta: float = 60.0,
    n: int = 6,
    most: tuple[int, int] = (24, 12),
    theta: tuple[float, float] = (0.4, 0.8),
    mode: str = "extrapolate",
    service: tuple[float, float] = (0.002, 0.08),
    timeout: float = 30.0,
    end: float = END,
    most_events: int = MOST_EVENTS,
    of: Callable[[float], float] = rate,
) -> Figures:
    """One run from `degrees` of the intermediate and the sink; `scaled`: by AUTOSCALE, or not at all."""
    names, degree = ("intermediate", "sink"), list(degrees)
    queues: tuple[deque[int], deque[int]] = (deque(), deque())
    busy, received, done, seen = [0, 0], [0, 0], [0, 0], [0, 0]
    counted: tuple[list[tuple[float, int]], list[tuple[float, int]]] = ([], [])
    heap: list[tuple[float, int, str, Any]] = []
    emitted_at: dict[int, float] = {}
    run, serial, last, events = Figures(), 0, 0.0, 0

    def push(at: float, kind: str, what: Any = None) -> None:
        nonlocal serial
        serial += 1
        heapq.heappush(heap, (at, serial, kind, what))

    def start(i: int, now: float) -> None:
        while queues[i] and busy[i] < degree[i]:
            busy[i] += 1
            push(now + service[i], "done", (i, queues[i].popleft()))

    for at in arrivals(seed, int(end), of=of):
        push(at, "emit")
    step = delta / n
    for k in range(1, int(end / step) + 1):
        push(k * step, "measure", k)
    while heap:
        t, _, kind, what = heapq.heappop(heap)
        events += 1
        if t > end + 60 or events > most_events:
            break
        run.until = t
        if t <= end:
            run.task_seconds += (t - last) * sum(degree)
            last = t
        if kind == "emit":  # a replay is a new emission
            run.emissions += 1
            emitted_at[run.emissions] = t
            push(t + timeout, "timeout", run.emissions)
            queues[0].append(run.emissions)
            received[0] += 1
            start(0, t)
        elif kind == "done":
            i, one = what
            busy[i] -= 1
            done[i] += 1
            if i == 0:
                queues[1].append(one)
                received[1] += 1
                start(1, t)
            elif one in emitted_at:
                run.latencies.append((t, t - emitted_at.pop(one)))
            start(i, t)
        elif kind == "timeout":
            if emitted_at.pop(what, None) is not None:
                run.late += 1
                if t < end:
                    push(t, "emit")
        else:
            for i in (0, 1):
                counted[i].append((t, received[i] - seen[i]))
                seen[i] = received[i]
            if not scaled or what % n:
                continue
            measures: dict[str, dict[str, Any]] = {}
            for i in (0, 1):
                ts, ys = zip(*counted[i][-n:])
                waiting = received[i] - done[i]
                measures[names[i]] = {"ts": ts, "counts": ys, "backlog": waiting, "latency": service[i]}
                measures[names[i]].update(degree=degree[i], most=most[i])
            plan = decide(names, {"sink": ["intermediate"]}, measures, delta, theta, mode)
            for i in (0, 1):
                new = plan[names[i]][1]
                if new != degree[i]:
                    run.actions.append((t, names[i], degree[i], new))
                    degree[i] = new
                start(i, t)
    return run
