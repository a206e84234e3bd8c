"""The policy `orientstream`: in every window it learns what each configuration brought, and takes the cheapest that is
predicted to keep latency and throughput.

Wang, Zhuang, Shi: System resource allocation for variable data streams, CAAI Transactions on Intelligent Systems 14(6),
2019, pp. 1278-1285, DOI 10.11992/tis.201908011.

Guard rails of ours: while too little is learnt, and in a window in which what was measured lies far outside of what was
predicted, capacity decides; no configuration is offered that cannot keep up; a unit shrinks only after `patience` windows.
`patience=0` is the paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from esault.elasticity.action import Action, Advise, Rescale
from esault.elasticity.policies.orientstream.configuration import Choice, Configuration, Node, Prediction, choose
from esault.elasticity.policies.orientstream.features import (
    TARGETS,
    Remembered,
    WindowState,
    features,
    scales,
    window_state,
)
from esault.elasticity.policies.orientstream.learners import learners
from esault.elasticity.policies.orientstream.regression import ENSEMBLES, SPREADS, Ensemble, Estimate
from esault.elasticity.view import RunView
from esault.errors import UsageError

__all__ = ["OrientStream", "by_capacity", "candidates"]

#: shares of their time that sub-units are busy, a candidate for each
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9)
#: beyond it queues only grow: no such configuration is offered to the learners, who may never have seen one
FULL = 0.95
#: seconds in which what waits should be gone
CATCH_UP = 3.0
#: tuples a second below which nothing is offered; thresholds on throughput are shares, and need some
NOTHING = 1e-6
#: a measured value so many deviations of the learners from their mean is abnormal
ABNORMAL = 3.0


@dataclass
class OrientStream:
    """Parameters in seconds, shares and windows. Needs the package river; raises UsageError without it."""

    #: a tuple should take less than so many seconds, from the source's due time to the last unit
    latency: float = 1.0
    #: more than this share of what the sources offer should be processed
    throughput: float = 0.9
    #: weights of the processors' and the memory's use; together 1
    alpha: float = 0.5
    beta: float = 0.5
    #: how four learners become one: `od` is the paper's, `edk` its predecessor's, `blend` ours
    ensemble: str = field(default="od", metadata={"choices": ENSEMBLES})
    #: how far from the mean `od` lets a learner be: standard deviation, or variance as the paper's text says
    spread: str = field(default="std", metadata={"choices": SPREADS})
    #: of the learners' random numbers
    seed: int = 1
    #: windows that are learnt from before predictions decide
    warm_up: int = 30
    #: share of its time that a sub-unit should be busy, while capacity decides
    target: float = 0.65
    #: windows for which fewer sub-units must have been enough
    patience: int = 5
    #: seconds between two looks, and length of a window
    period: float = 1.0
    #: change units between the pipelines of each window that a spout in MicroBatches has collected, and only then
    pipelines: bool = False

    def __post_init__(self) -> None:
        if abs(self.alpha + self.beta - 1.0) > 1e-9:
            raise UsageError(
                f"policy 'orientstream': alpha={self.alpha:g} and beta={self.beta:g} must make 1 together: give both"
            )
        for name in ("latency", "target", "period"):
            if getattr(self, name) <= 0:
                raise UsageError(f"policy 'orientstream': {name}={getattr(self, name):g} must be above 0")
        if self.target > 1:
            raise UsageError(f"policy 'orientstream': target={self.target:g} is a share of time: at most 1")
        #: one ensemble a target
        self.models = {name: Ensemble(learners(self.seed), self.ensemble, self.spread) for name in TARGETS}
        self._remembered = Remembered()
        self._state: WindowState | None = None
        #: by unit: windows for which fewer were wanted, and the most that was wanted in them
        self._under: dict[str, tuple[int, int]] = {}
        self._abnormal = ""
        self._advised = False

    def decide(self, view: RunView) -> Sequence[Action]:
        """Learn from the window; change what should be changed."""
        before, self._state = self._state, window_state(view, self._remembered)
        state = self._state
        units = [view.units[name] for name in view.managed]
        if state is None or not state.known or any(unit.changing for unit in units):
            return ()
        start = min(unit.window.start for unit in units if unit.window is not None)
        self._abnormal = ""
        same = before is not None and before.configuration == state.configuration
        if same and not any(unit.changed_at is not None and unit.changed_at > start for unit in units):
            self._learn(state)
        wanted, why, feasible = self._wanted(state, state.rate)
        actions: list[Action] = [] if self.pipelines else list(self._changes(state, wanted, why))
        if not feasible and not self._advised:
            self._advised = True
            actions.append(
                Advise(
                    f"no configuration is predicted to keep latency below {self.latency:g} s and throughput above "
                    f"{self.throughput:.0%} of {state.rate:,.0f} tuples/s: allow more sub-units, or ask for less",
                    unit=view.managed[-1],
                )
            )
        return actions

    def configuration(self, rate: float) -> Configuration | None:
        """Return the configuration for sources that offer `rate` tuples a second; None before it has seen a window."""
        state = self._state
        if state is None or not state.known:
            return None
        if self.pipelines:  # each begins when all before it is done: what waited when it was measured is gone by then
            state = replace(state, units={name: replace(unit, waiting=0.0) for name, unit in state.units.items()})
        return self._wanted(state, rate)[0]

    # learning --------------------------------------------------------------------------------------

    @property
    def trained(self) -> bool:
        """Return whether predictions decide."""
        return self.models["latency"].samples >= self.warm_up

    def _learn(self, state: WindowState) -> None:
        waited = {name: unit.waiting_before for name, unit in state.units.items()}
        x = features(state, state.configuration, state.rate, waited)
        trained = self.trained
        scale = scales(state, state.configuration, state.rate)
        estimates = {name: self.models[name].learn(x, state.measured[name] / scale[name]) for name in TARGETS}
        self._abnormal = self._abnormality(state, estimates) if trained else ""

    def _abnormality(self, state: WindowState, estimates: Mapping[str, Estimate]) -> str:
        """Latency or throughput worse than asked for and far from what the learners say; empty if not."""
        limits = {"latency": state.measured["latency"] >= self.latency}
        limits["throughput"] = state.measured["throughput"] <= self.throughput
        for name, bad in limits.items():
            estimate, measured = estimates[name], state.measured[name]
            if bad and abs(measured - estimate.centre) > ABNORMAL * estimate.deviation:
                return f"{name} was {measured:.3g}, and {estimate.centre:.3g} had been predicted"
        return ""

    # choosing --------------------------------------------------------------------------------------

    def _wanted(self, state: WindowState, rate: float) -> tuple[Configuration, str, bool]:
        """The configuration, why, and whether it is predicted to do."""
        enough = by_capacity(state, rate, self.target, CATCH_UP)
        needs = f"{rate:,.0f} tuples/s at {self.target:.0%} of each sub-unit's time take {enough}"
        if not self.trained:
            return enough, f"{self.models['latency'].samples} of {self.warm_up} windows are learnt; {needs}", True
        if self._abnormal:
            return enough, f"{self._abnormal}; {needs}", True
        offered = candidates(state, rate, CATCH_UP)
        choice = choose(
            {c: self._predict(state, c, rate) for c in offered},
            self.latency,
            self.throughput * max(rate, NOTHING),
            self.alpha,
            self.beta,
        )
        if choice.feasible:
            return choice.configuration, f"{_told(choice)}: the least of {len(offered)} that do", True
        # The fastest as predicted, and no unit narrower than capacity wants it.
        widths = tuple((name, max(n, dict(enough.widths)[name])) for name, n in choice.configuration.widths)
        return Configuration(widths), f"none of {len(offered)} will do, {_told(choice)} is the fastest; {needs}", False

    def _predict(self, state: WindowState, configuration: Configuration, rate: float) -> Prediction:
        waiting = {name: unit.waiting for name, unit in state.units.items()}
        x = features(state, configuration, rate, waiting)
        scale = scales(state, configuration, rate)
        value = {name: self.models[name].predict(x).value * scale[name] for name in TARGETS}
        return Prediction(
            (Node(value["cpu"], value["memory"]),), value["latency"], value["throughput"] * max(rate, NOTHING)
        )

    def _changes(self, state: WindowState, wanted: Configuration, why: str) -> Sequence[Action]:
        """Wider at once; narrower when that was wanted long enough, and then as wide as was wanted most in that time."""
        actions, free = [], state.free
        for name, n in wanted.widths:
            width = state.units[name].width
            if n >= width:
                self._under.pop(name, None)
                to = min(n, width + free)
            else:
                windows, most = self._under.get(name, (0, 0))
                self._under[name] = (windows + 1, max(most, n))
                if windows < self.patience:
                    continue
                to = self._under.pop(name)[1]
            free -= max(0, to - width)
            if to != width:
                actions.append(Rescale(why, to, unit=name))
        return actions


def _told(choice: Choice) -> str:
    p, node = choice.prediction, choice.prediction.nodes[0]
    return (
        f"{choice.configuration}: {p.latency:.3g} s and {p.throughput:,.0f} tuples/s predicted, "
        f"with {node.cpu:.0%} of the processors and {node.memory:.0%} of the memory"
    )


def by_capacity(state: WindowState, rate: float, load: float, catch_up: float) -> Configuration:
    """Every unit as wide as keeps its sub-units busy for the share `load`, with what waits gone in `catch_up` seconds."""
    widths, free = [], state.free
    for name, unit in state.units.items():
        if unit.service is None:
            widths.append((name, unit.width))
            continue
        work = state.demand(name, rate) + unit.waiting * (unit.service or 0.0) / catch_up
        wanted = min(max(math.ceil(work / load - 1e-6), unit.least, 1), unit.most, unit.width + free)
        free -= max(0, wanted - unit.width)
        widths.append((name, wanted))
    return Configuration(tuple(widths))


def candidates(state: WindowState, rate: float, catch_up: float) -> list[Configuration]:
    """Fewest sub-units first; never empty. With the one in force, unless it cannot keep up."""
    found = {by_capacity(state, rate, load, catch_up) for load in LOADS}
    found |= {wider for c in found for wider in _one_wider(state, c)}
    found.add(state.configuration)
    steady = [c for c in found if _fits(state, c, rate)]
    return sorted(steady or {by_capacity(state, rate, LOADS[0], catch_up)}, key=lambda c: (c.parallelism, c.widths))


def _one_wider(state: WindowState, base: Configuration) -> Sequence[Configuration]:
    """The same with one unit wider by one: for units whose latency the load says little about."""
    free = state.free - sum(max(0, n - state.units[name].width) for name, n in base.widths)
    return [
        Configuration(tuple((name, n + (name == wider)) for name, n in base.widths))
        for wider, width in base.widths
        if state.units[wider].service is not None
        and width < state.units[wider].most
        and (free > 0 or width < state.units[wider].width)
    ]


def _fits(state: WindowState, configuration: Configuration, rate: float) -> bool:
    return all(state.demand(name, rate) <= FULL * width for name, width in configuration.widths)
