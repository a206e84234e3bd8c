"""Capacity that a load would take: policies and fixed widths, simulated on what units did in a run.

A plan is only as good as what it follows from. So each candidate is tried with several seeds, with what a tuple takes as it
was measured, less and more, and with changes as slow as the slowest: what holds in all of these is likely to hold.

It is one module of over 300 lines: a candidate, its trials and what is said of them are of no use without each other.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from esault.elasticity.estimators.budget_division import Share, divided
from esault.elasticity.objective import LatencyObjective
from esault.elasticity.policy import NONE
from esault.errors import UsageError
from esault.sim.model import Host, Model, Operator, Source, Timing
from esault.sim.simulation import Run, simulate
from esault.sim.unit_profile import BETWEEN, UnitProfile, modelled

__all__ = ["Candidate", "CapacityPlanner", "Outcome", "Scenario", "Variation", "busiest"]

#: seconds of a step of the simulator: the grain of latencies
STEP = 0.02
#: shares of a fixed width's time that may be spent processing at the load's peak, the cheapest first
UTILISATIONS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
#: share that is taken where there is no objective
USUAL = 0.7
#: seconds of a policy's window: where in one a load jumps is chance
WINDOW = 0.25
#: samples of the rate, by which a peak or the busiest part is found
SAMPLES = 2000


@dataclass(frozen=True)
class Candidate:
    """A policy for all units, or `widths` that nothing changes."""

    policy: str
    widths: Mapping[str, int]

    def __str__(self) -> str:
        if self.policy != NONE:
            return self.policy
        return "always " + " ".join(f"{name}={width}" for name, width in self.widths.items())


class Variation(NamedTuple):
    """The values by which one trial differs from others."""

    #: what a tuple takes, as a share of what was measured
    cost: float
    seed: int
    #: what changes take, as a share of the scenario's
    slowness: float = 1.0


@dataclass(frozen=True)
class Trial:
    """One simulated run."""

    #: seconds; nan: nothing came to its end
    p99: float
    kept: bool
    seconds_over: int
    #: sub-units of bolts, on average and at most at a time
    mean: float
    most: int
    changes: int
    #: tuples that waited at the end, and seconds of the mean load that they are
    waiting: float
    behind: float
    #: tuples that waited at most at a time, as seen once a second
    backlog: float = 0.0

    @property
    def keeps_up(self) -> bool:
        """Return whether no more waits at the end than comes in a second."""
        return self.behind <= 1.0


@dataclass(frozen=True)
class Outcome:
    """A candidate in all its trials; the first is the one with what was measured."""

    candidate: Candidate
    trials: tuple[Trial, ...]

    @property
    def kept(self) -> int:
        """Return how many trials kept the objective."""
        return sum(each.kept for each in self.trials)

    @property
    def safe(self) -> bool:
        """Return whether all trials kept it."""
        return self.kept == len(self.trials)

    @property
    def keeping_up(self) -> int:
        """Return how many trials kept up with what came."""
        return sum(each.keeps_up for each in self.trials)

    def span(self, what: str) -> tuple[float, float, float]:
        """Return a field of the trials: of the first one, the least and the greatest."""
        values = [float(getattr(each, what)) for each in self.trials]
        return values[0], min(values), max(values)


def busiest(load: Any, seconds: float) -> float:
    """Return when the part of so many seconds with the most tuples begins, seconds since the load's start."""
    if seconds >= load.seconds:
        return 0.0
    grain = load.seconds / SAMPLES
    rates = [load.rate((i + 0.5) * grain) for i in range(SAMPLES)]
    sums = [0.0, *itertools.accumulate(rates)]
    long = max(1, round(seconds / grain))
    first = max(range(SAMPLES - long + 1), key=lambda i: sums[i + long] - sums[i])
    return float(first * grain)


@dataclass(frozen=True)
class Scenario:
    """A topology under a load: what is simulated, as a value that other processes can be given."""

    profiles: tuple[UnitProfile, ...]
    #: spout -> its load
    loads: Mapping[str, Any]
    seconds: float
    objective: LatencyObjective | None
    #: sub-units of bolts at most
    slots: int
    #: policies are told that this is a budget, which they divide
    budget: bool = False
    #: what changes take
    timing: Timing = field(default_factory=Timing)

    def operators(self, cost: float = 1.0) -> list[Operator]:
        """Return the parts that process, where a tuple takes `cost` times what was measured."""
        profiles = [replace(each, busy=each.busy * cost) for each in self.profiles]
        return [part for part in modelled(profiles, self.loads) if isinstance(part, Operator)]

    @property
    def units(self) -> list[str]:
        """Return the names of the bolts that got something."""
        return [part.name for part in self.operators() if BETWEEN not in part.name]

    def trial(self, candidate: Candidate, variation: Variation) -> Trial:
        """Simulate one run."""
        seed, late = variation.seed, WINDOW * random.Random(variation.seed).random()
        parts = [replace(part, width=candidate.widths.get(part.name, 1)) for part in self.operators(variation.cost)]
        steps = [part.name for part in parts if BETWEEN in part.name]
        sources = [
            Source(each.name, partial(_begun, self.loads[each.name], late))
            for each in self.profiles
            if each.kind == "spout"
        ]
        hosts, slots = (Host(cores=float(self.slots)),), self.slots + len(steps)
        model = Model([*sources, *parts], hosts, self.timing.times(variation.slowness), slots)
        run = simulate(
            model,
            candidate.policy,
            seconds=self.seconds,
            seed=seed,
            policies=dict.fromkeys(steps, NONE),
            step=STEP,
            objectives=() if self.objective is None else (str(self.objective),),
            budget=len(sources) + len(steps) + self.slots if self.budget else None,
        )
        return self._counted(run, steps)

    def _counted(self, run: Run, steps: Sequence[str]) -> Trial:
        units = {name: each for name, each in run.operators.items() if name not in steps}
        waiting = run.lag + sum(each.waiting for each in units.values())
        status = run.objectives[0] if run.objectives else None
        # What waits at the end has not been counted as slow: a candidate that falls behind keeps nothing.
        behind = waiting / (run.offered / run.seconds) if run.offered else 0.0
        seen = zip(*([waits for *_, waits in each.series] for each in units.values()))
        patience = math.inf if self.objective is None else max(1.0, self.objective.seconds)
        return Trial(
            p99=run.latency.percentile(0.99),
            kept=(status is None or status.kept) and behind <= patience,
            seconds_over=0 if status is None else status.seconds_over,
            mean=sum(each.worker_seconds for each in units.values()) / run.seconds,
            most=_most([each.trace for each in units.values()]),
            changes=sum(len(each.changes) for each in units.values()),
            waiting=waiting,
            behind=behind,
            backlog=max([waiting, *map(sum, seen)]),
        )


class CapacityPlanner:
    """Tries candidates in one scenario.

    `margin`: share by which what a tuple takes may be more, or less; `slowest`: what a slow change takes, as a share of a usual one;
    `mapped`: as `map`, may call its function in other processes.
    Raises UsageError for what cannot be.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        margin: float = 0.25,
        slowest: float = 1.0,
        seeds: Sequence[int] = (1, 2, 3),
        mapped: Callable[..., Iterable[Any]] = map,
    ) -> None:
        if scenario.objective is not None and scenario.objective.unit:
            unit = scenario.objective.unit
            raise UsageError(f"objective '{scenario.objective}': a plan is for all units together; leave {unit}= out")
        if not scenario.units:
            raise UsageError("no bolt processed anything in that run: run it on some input first")
        self.scenario = scenario
        self._mapped = mapped
        #: of each run that a candidate is tried in
        self.trials = [Variation(1.0, seed) for seed in seeds]
        if slowest > 1.0:
            self.trials.append(Variation(1.0, seeds[0], slowest))
        self.trials += [Variation(cost, seeds[0]) for cost in (1.0 / (1.0 + margin), 1.0 + margin) if margin]

    def arriving(self) -> dict[str, float]:
        """Return the tuples a second that come to each bolt at the load's peak, as far as its senders keep up."""
        peak: dict[str, float] = {}
        operators = self.scenario.operators()
        for i in range(SAMPLES):
            now = (i + 0.5) * self.scenario.seconds / SAMPLES
            rates = {name: load.rate(now) for name, load in self.scenario.loads.items()}
            for part in operators:
                arriving = sum(rates[name] for name in part.senders)
                rates[part.name] = arriving * part.selectivity
                peak[part.name] = max(peak.get(part.name, 0.0), arriving)
        return {name: peak[name] for name in self.scenario.units}

    def too_narrow(self) -> dict[str, tuple[int, float]]:
        """Return the units that may not have as many sub-units as the load's peak is work for: how many they may, and how many that is."""
        parts, rates = {part.name: part for part in self.scenario.operators()}, self.arriving()
        works = {name: rate * parts[name].service for name, rate in rates.items()}
        return {
            name: (most, work) for name, work in works.items() if (most := parts[name].most) is not None and work > most
        }

    def fixed(self, utilisation: float) -> Candidate:
        """Return widths at which each unit processes for that share of its time at the load's peak."""
        parts = {part.name: part for part in self.scenario.operators()}
        return Candidate(
            NONE,
            {
                name: _within(parts[name], math.ceil(rate * parts[name].service / utilisation - 1e-9))
                for name, rate in self.arriving().items()
            },
        )

    def cheapest_fixed(self, tell: Callable[[str], None]) -> Outcome | None:
        """Return the fewest sub-units that keep the objective in all trials; None where none does within the slots."""
        tried: set[str] = set()
        for utilisation in UTILISATIONS if self.scenario.objective is not None else (USUAL,):
            candidate = self.fixed(utilisation)
            if sum(candidate.widths.values()) > self.scenario.slots:
                return None
            if str(candidate) in tried:
                continue
            tried.add(str(candidate))
            tell(str(candidate))
            # One run tells most of those that do not.
            if self.scenario.trial(candidate, self.trials[-1]).kept:
                outcome = self._tried(candidate)
                if outcome.safe:
                    return outcome
        return None

    def best_fixed(self) -> Outcome:
        """Return the division of all slots at which tuples wait least at the load's peak."""
        latency = 0.1 if self.scenario.objective is None else self.scenario.objective.seconds
        parts = {part.name: part for part in self.scenario.operators()}
        shares = {}
        for name, rate in self.arriving().items():
            part = parts[name]
            most = _within(part, self.scenario.slots)
            shares[name] = Share(part.least, most, part.least, rate, part.service, latency=latency)
        return self._tried(Candidate(NONE, divided(self.scenario.slots, shares)))

    def sure(self, outcome: Outcome) -> bool:
        """Return whether all trials keep up, and the objective."""
        return outcome.keeping_up == len(outcome.trials) and outcome.safe

    def rank(self, outcome: Outcome) -> tuple[float, ...]:
        """Return how good an outcome is; the greater the better: what is kept, then what is sure to be quick."""
        (_, _, slowest), (_, _, backlog) = outcome.span("p99"), outcome.span("backlog")
        return (outcome.kept, outcome.keeping_up, -math.inf if math.isnan(slowest) else -slowest, -backlog)

    def outcome(self, policy: str) -> Outcome:
        """Try a policy, by its words on the command line, from the fewest sub-units of each. Raises UsageError."""
        least = {part.name: part.least for part in self.scenario.operators()}
        return self._tried(Candidate(policy, {name: least[name] for name in self.scenario.units}))

    def _tried(self, candidate: Candidate) -> Outcome:
        return Outcome(candidate, tuple(self._mapped(partial(self.scenario.trial, candidate), self.trials)))


def _within(part: Operator, width: int) -> int:
    """Return the width, as far as the unit may have it."""
    return max(part.least, width if part.most is None else min(width, part.most))


def _begun(load: Any, late: float, now: float) -> float:
    """Return the rate of a load that begins so much later."""
    return float(load.rate(max(0.0, now - late)))


def _most(traces: Sequence[Sequence[tuple[float, int]]]) -> int:
    """Return the most sub-units that there were at a time."""
    events = sorted((at, i, width) for i, trace in enumerate(traces) for at, width in trace)
    widths: dict[int, int] = {}
    most = 0
    for _at, same in itertools.groupby(events, key=lambda event: event[0]):
        widths.update({i: width for _, i, width in same})
        most = max(most, sum(widths.values()))
    return most
