"""The reference model of CRAA, window by window: a chain of five operators with one bounded buffer each.

What an operator emits in one window reaches the next in the window after it. `craa`, `threshold` and `kalman` are readings of the
paper of their own, which share no code with the engine's policies; `run` takes either, so that they can be held against each
other. Rates are tuples a second, buffers tuples; a window lasts `SECONDS`.

It is one module of over 300 lines: the equations of a window follow one another here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = [
    "CHAIN",
    "LOADS",
    "OPERATORS",
    "SECONDS",
    "Filter",
    "Judge",
    "Measured",
    "Operator",
    "Outcome",
    "Reference",
    "random_load",
    "run",
    "trend",
    "walk",
]

SECONDS = 5.0
GUARD = 1e-9
CHAIN = ("O1", "O2", "O3", "O4", "O5")
SENDERS: Mapping[str, tuple[str, ...]] = {"O1": (), "O2": ("O1",), "O3": ("O2",), "O4": ("O3",), "O5": ("O4",)}
Load = Callable[[int], float]


@dataclass(frozen=True)
class Operator:
    """`one`: tuples a second of one unit; `ratio`: tuples emitted for one processed."""

    size: float
    one: float
    ratio: float = 1.0


#: the paper's table 2
OPERATORS = {
    "O1": Operator(50, 500),
    "O2": Operator(500, 400),
    "O3": Operator(1000, 300),
    "O4": Operator(2000, 200),
    "O5": Operator(5000, 100),
}


@dataclass(frozen=True)
class Measured:
    """One operator in one window: input rate, units, tuples in the buffer before and after."""

    arrivals: float
    width: int
    before: float
    waiting: float
    processed: float = 0.0
    lost: float = 0.0


def _jitter(k: int) -> float:
    t = k * 5 % 160
    return 6000 if 50 <= t < 55 else 3000 if t < 155 else 1000


def _stage(k: int) -> float:
    t = k * 5 % 500
    return 5000 if t < 250 else 10000 if t < 350 else 2000


#: tuples a second at O1 in window k
LOADS: dict[str, Load] = {
    "step": lambda k: (1000, 2000, 5000, 6000, 5000, 2000)[k % 6],
    "jitter": _jitter,
    "sine": lambda k: 5000 + 2500 * math.sin(2 * math.pi * (5 * k + 2.5) / 500),
    "stage": _stage,
}


def random_load(seed: int, low: float, high: float) -> Load:
    """Drawn anew in every window."""
    generator, seen = random.Random(seed), list[float]()

    def load(k: int) -> float:
        while len(seen) <= k:
            seen.append(generator.uniform(low, high))
        return seen[k]

    return load


class Filter:
    """A scalar Kalman filter: a random walk, or level and slope."""

    def __init__(self, q: float, r: float, sloped: bool) -> None:
        self.q, self.r, self.sloped = q, r, sloped
        self.x: list[float] | None = None
        self.p = [[r, 0.0], [0.0, r if sloped else 0.0]]

    def update(self, z: float) -> None:
        """Take a measurement."""
        if self.x is None:
            self.x = [z, 0.0]
            return
        (a, c), (d, g) = self.p
        if self.sloped:
            x0 = self.x[0] + self.x[1]
            p00, p01, p10, p11 = a + c + d + g + self.q, c + g, d + g, g + self.q
        else:
            x0, p00, p01, p10, p11 = self.x[0], a + self.q, 0.0, 0.0, 0.0
        k0, k1 = p00 / (p00 + self.r), p10 / (p00 + self.r)
        self.x = [x0 + k0 * (z - x0), self.x[1] + k1 * (z - x0)]
        self.p = [[(1 - k0) * p00, (1 - k0) * p01], [p10 - k1 * p00, p11 - k1 * p01]]

    def forecast(self, h: int) -> float:
        """So many windows ahead."""
        assert self.x is not None
        return max(0.0, self.x[0] + h * self.x[1])


def walk() -> Filter:
    """A random walk."""
    return Filter(1e6, 1e4, False)


def trend() -> Filter:
    """Level and slope."""
    return Filter(1e5, 1e5, True)


def _out(arrivals: float, rate: float, before: float, ratio: float) -> float:
    return ratio * (rate if arrivals >= rate else min(rate, arrivals + before / SECONDS))


def _change(after: float, operator: Operator, delta: float, shrink: str) -> int:
    change = (after - operator.size * delta) / SECONDS
    if change > 0:
        return math.ceil(change / operator.one - GUARD)
    if shrink == "floor":
        return math.floor(change / operator.one + GUARD)
    return -math.floor(-change / operator.one + GUARD)


def _low(arrivals: float, width: int, one: float, rule: str) -> bool:
    if width <= 1:
        return False
    alpha, rate = (width - 1) / width, width * one
    return arrivals / (alpha * rate) < alpha if rule == "printed" else arrivals / rate < alpha


class Judge(Protocol):
    """Between two windows: changes of the number of units, and rates to which operators are slowed down."""

    #: windows in which a wanted change was not made, by operator
    avoided: dict[str, int]

    def __call__(self, measured: Mapping[str, Measured]) -> tuple[dict[str, int], dict[str, float]]:
        """Return what was measured in the window that ended."""
        ...


@dataclass
class Reference:
    """`algorithm`: CRAA, TA or KPA."""

    algorithm: str
    kalman: Callable[[], Filter] = trend
    operators: Mapping[str, Operator] = field(default_factory=lambda: OPERATORS)
    beta: float = 0.8
    gamma: float = 0.2
    delta: float = 0.7
    tau: float = 0.8
    shrink: str = "toward_zero"
    rule: str = "printed"
    feedback: bool = True
    judging: bool = True
    tolerance: float = 0.0
    #: units before whom, by operator; the head has none
    senders: Mapping[str, Sequence[str]] = field(default_factory=lambda: SENDERS)

    def __post_init__(self) -> None:
        self.filters = {o: self.kalman() for o in self.operators}
        self.avoided = dict.fromkeys(self.operators, 0)

    def __call__(self, measured: Mapping[str, Measured]) -> tuple[dict[str, int], dict[str, float]]:
        """One decision."""
        for o, m in measured.items():
            self.filters[o].update(m.arrivals)
        if self.algorithm == "CRAA":
            return self._craa(measured)
        changes = {}
        for o, m in measured.items():
            operator = self.operators[o]
            arrivals = m.arrivals if self.algorithm == "TA" else self.filters[o].forecast(1)
            after = (arrivals - m.width * operator.one) * SECONDS + m.waiting
            full = (m.waiting if self.algorithm == "TA" else after) / operator.size
            if full >= self.beta or (full < self.gamma and _low(arrivals, m.width, operator.one, self.rule)):
                changes[o] = max(_change(after, operator, self.delta, self.shrink), 1 - m.width)
        return {o: c for o, c in changes.items() if c}, {}

    def _craa(self, st: Mapping[str, Measured]) -> tuple[dict[str, int], dict[str, float]]:
        cfg = self.operators
        rate = {o: st[o].width * cfg[o].one for o in cfg}
        bo = {o: st[o].waiting for o in cfg}
        sent = {o: _out(st[o].arrivals, rate[o], st[o].before, cfg[o].ratio) for o in cfg}
        coming = {o: sum(sent[u] for u in up) if up else self.filters[o].forecast(1) for o, up in self.senders.items()}
        planned, changing = dict(rate), set[str]()
        changes: dict[str, int] = {}
        slowed: dict[str, float] = {}
        for o in cfg:
            up, size = self.senders[o], cfg[o].size
            after = (coming[o] - rate[o]) * SECONDS + bo[o]
            full = after / size
            if self.feedback and up and self.delta < full < self.beta:
                cuts = self._feedback(o, coming, rate, planned, bo, sent, changing)
                for u, to in cuts.items():
                    cut = min(rate[u] - to, sent[u] / cfg[u].ratio)
                    slowed[u] = to
                    changing.add(u)
                    bo[u] += cut * SECONDS  # it keeps the tuples
                    coming[o] -= cfg[u].ratio * cut
                continue
            low = full < self.gamma and _low(coming[o], st[o].width, cfg[o].one, self.rule)
            if full < self.beta and not low:
                continue
            change = max(_change(after, cfg[o], self.delta, self.shrink), 1 - st[o].width)
            if not change:
                continue
            if self.judging:
                if up:
                    later = sum(_out(coming[u], planned[u], bo[u], cfg[u].ratio) for u in up)
                else:
                    later = self.filters[o].forecast(2)
                t = later / coming[o] if coming[o] > 0 else math.inf
                agrees = abs(t - 1) <= self.tolerance or (t >= 1 if change > 0 else t <= 1)
                if not agrees and not (change > 0 and after >= size):
                    self.avoided[o] += 1
                    continue
            changes[o] = change
            planned[o] = (st[o].width + change) * cfg[o].one
            changing.add(o)
        return changes, slowed

    def _feedback(
        self,
        o: str,
        coming: Mapping[str, float],
        rate: Mapping[str, float],
        planned: Mapping[str, float],
        bo: Mapping[str, float],
        sent: Mapping[str, float],
        changing: set[str],
    ) -> dict[str, float]:
        cfg = self.operators
        needed = coming[o] - rate[o] - (cfg[o].size * self.delta - bo[o]) / SECONDS
        candidates = []
        for u in self.senders[o]:
            room = (cfg[u].size * self.tau - bo[u]) / SECONDS
            then = (cfg[u].size - bo[u]) / SECONDS - (coming[u] - planned[u])
            to = rate[u] - max(0.0, min(room, then, rate[u]))
            cut = min(rate[u] - to, sent[u] / cfg[u].ratio)
            if u not in changing and cut > GUARD:
                candidates.append((cfg[u].ratio * cut, u, to))
        if needed <= 0 or needed > sum(c[0] for c in candidates):
            return {}
        chosen: dict[str, float] = {}
        spared = 0.0
        for less, u, to in sorted(candidates, key=lambda c: -c[0]):
            if spared >= needed - GUARD:
                break
            chosen[u] = to
            spared += less
        return chosen


@dataclass
class Outcome:
    """By operator in the order of the chain: tuples lost, used over allocated capacity, changes, changes not made."""

    lost: list[int]
    used: list[float]
    changes: list[int]
    avoided: list[int]
    slowed: int
    #: tuples a second of the last operator
    throughput: int
    #: units in each window, by operator
    widths: dict[str, list[int]] = field(default_factory=dict, repr=False)


def run(
    load: Load,
    judge: Judge,
    windows: int = 120,
    operators: Mapping[str, Operator] = OPERATORS,
    capped: bool = False,
) -> Outcome:
    """All operators begin with one unit. `capped`: a slow-down caps the next window (what an engine can do); else the operator keeps
    what it has just produced (what the paper says)."""
    width: dict[str, int] = dict.fromkeys(CHAIN, 1)
    bo: dict[str, float] = dict.fromkeys(CHAIN, 0.0)
    before: dict[str, float] = dict.fromkeys(CHAIN, 0.0)
    total: dict[str, list[float]] = {o: [0.0, 0.0, 0.0, 0.0] for o in CHAIN}
    caps: Mapping[str, float] = {}
    widths: dict[str, list[int]] = {o: [] for o in CHAIN}
    slowed = 0
    for k in range(windows):
        measured: dict[str, Measured] = {}
        out: dict[str, float] = {}
        for o in CHAIN:
            arrivals = before[SENDERS[o][0]] if SENDERS[o] else load(k)
            rate = width[o] * operators[o].one
            done = min(rate, caps.get(o, math.inf), arrivals + bo[o] / SECONDS)
            after = bo[o] + (arrivals - done) * SECONDS
            lost = max(0.0, after - operators[o].size)
            measured[o] = Measured(arrivals, width[o], bo[o], after - lost, done * SECONDS, lost)
            bo[o], out[o] = after - lost, done * operators[o].ratio
            widths[o].append(width[o])
            for i, figure in enumerate((lost, done * SECONDS, rate * SECONDS, done / windows)):
                total[o][i] += figure
        changes, caps = judge(measured)
        slowed += len(caps)
        if not capped:
            for u, to in caps.items():
                cut = min(width[u] * operators[u].one - to, out[u] / operators[u].ratio)
                bo[u] += cut * SECONDS
                out[u] -= cut * operators[u].ratio
            caps = {}
        for o, change in changes.items():
            width[o] += change
            total[o].append(1)
        before = out
    return Outcome(
        [round(total[o][0]) for o in CHAIN],
        [round(total[o][1] / total[o][2], 3) for o in CHAIN],
        [len(total[o]) - 4 for o in CHAIN],
        [judge.avoided[o] for o in CHAIN],
        slowed,
        round(total[CHAIN[-1]][3]),
        widths,
    )


def summary(outcome: Outcome) -> dict[str, Any]:
    """As data."""
    return {k: v for k, v in vars(outcome).items() if k != "widths"}
