"""The policy `autoscale`: forecast the load of the next minute, and change the degree before it comes.

Kotto-Kombi, Lumineau, Lamarre: Approche préventive pour une gestion élastique du traitement parallèle et distribué de flux
de données, EGC 2017, pp. 57-68 (hal-01460709). At the end of every iteration of Delta seconds a line is fitted to the
arrivals of its n sub-intervals (2); expected arrivals and what waits (3) over the expected capacity (4), (5) are the
activity of an operator (6); with the sign of the slope it gives a local action (table 1), which must agree with what was
decided upstream (table 2). The new degree is min(maxP, ceil(degree * activity)), or one more.

Readings where the paper is unclear: the line is read at the instants of the next iteration, each value 0 at least, since the
printed sum gives back the arrivals (R1, `mode`); the correction of the capacity is 0 (R3, `correct`); upstream are the
direct senders with what was decided for them (R4); a scale-out at an activity of 1 or less adds one, also when it is
inherited (R5), capped (R8); never below the least (R6); the last known latency where nothing was processed, and no
decision before an iteration was measured in full (R9); an action that changes nothing still counts downstream (R10,
`propagate_only_if_changed`); spouts do nothing (R11). The paper names no values; the defaults are those of the first
author's public configuration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from esault.elasticity.action import Action, Rescale
from esault.elasticity.estimators.due import due
from esault.elasticity.policies.autoscale_load import activity_level, capacity, correction, forecast
from esault.elasticity.policies.autoscale_tables import (
    NOTHING,
    SCALE_OUT,
    band,
    global_actions,
    local_action,
    new_degree,
)
from esault.elasticity.view import RunView, UnitView
from esault.errors import UsageError
from esault.value_class import value_class

__all__ = ["Autoscale"]

#: iterations whose capacities are compared for the correction (R3)
COMPARED = 5


@dataclass
class _Operator:
    """The memory of one unit."""

    #: (seconds at the end, tuples) of each sub-interval of the iteration
    arrivals: list[tuple[float, float]] = field(default_factory=list)
    busy: float = 0.0
    processed: float = 0.0
    waiting: float = 0.0
    #: seconds a tuple, without waiting; None until one was processed
    latency: float | None = None
    #: of one task, tuples an iteration, oldest first
    capacities: deque[float] = field(default_factory=lambda: deque(maxlen=COMPARED))
    #: iterations in which it is left alone
    rest: int = 0


@value_class(frozen=True)
class _Judged:
    activity: float
    slope: float
    #: tuples of the next iteration
    arrivals: float
    waiting: float
    capacity: float


@dataclass
class Autoscale:
    """Parameters by the paper's names; an iteration (Delta) is `samples` windows of `period` seconds."""

    #: seconds of a sub-interval, Delta / n
    period: float = 10.0
    #: sub-intervals of an iteration (n)
    samples: int = 6
    #: at or below this share of its capacity an operator that gets no more is scaled in
    theta_min: float = 0.4
    #: above this share an operator that gets more and more is scaled out
    theta_max: float = 0.8
    #: arrivals increase only if a sub-interval's grow faster than this, tuples each second; the authors' code had 0.5, then 0.1
    dead_band: float = 0.0
    #: iterations in which a unit is left alone after a change; the authors' code had 1
    grace: int = 0
    #: extrapolate: the line is read one iteration later; printed: formula (2) as it stands, which is the arrivals
    mode: str = field(default="extrapolate", metadata={"choices": ("extrapolate", "printed")})
    #: a scale-out that changes nothing, at the most already, does not count downstream
    propagate_only_if_changed: bool = False
    #: add to the capacity what its last changes foretell (reading R3 of the covariance in formula (5))
    correct: bool = False
    #: what is due at sources that are held back counts as arrived and waiting: the paper's engine queues without limit
    count_due: bool = True

    def __post_init__(self) -> None:
        if self.period <= 0 or self.samples < 2:
            raise UsageError(
                "policy 'autoscale': period must be above 0, and samples 2 or more: a line needs two points"
            )
        if not 0 < self.theta_min < self.theta_max <= 1:
            raise UsageError(
                f"policy 'autoscale': theta_min={self.theta_min:g} and theta_max={self.theta_max:g} must be "
                "0 < theta_min < theta_max <= 1"
            )
        self._operators: dict[str, _Operator] = {}
        self._measured = 0

    def decide(self, view: RunView) -> Sequence[Action]:
        """Measure a sub-interval; at the end of an iteration decide for all units."""
        bolts = {n: u for n, u in view.units.items() if u.plan.kind == "bolt" and u.window is not None}
        if not bolts:
            return ()
        for name, unit in bolts.items():
            self._measure(self._operators.setdefault(name, _Operator()), unit, view)
        self._measured += 1
        if self._measured % self.samples:
            return ()
        judged = {n: j for n, u in bolts.items() if (j := self._judge(self._operators[n], u)) is not None}
        actions = self._act(view, bolts, judged)
        for operator in self._operators.values():
            operator.arrivals.clear()
            operator.busy = operator.processed = 0.0
        return actions

    def _measure(self, operator: _Operator, unit: UnitView, view: RunView) -> None:
        window = unit.window
        assert window is not None
        more = due(view.units, unit) if self.count_due else None
        operator.arrivals.append((window.end, window.arrivals + (more.arrivals if more else 0.0)))
        operator.busy += window.ended
        operator.processed += window.processed
        operator.waiting = window.waiting + (more.waiting if more else 0.0)

    def _judge(self, operator: _Operator, unit: UnitView) -> _Judged | None:
        """Formulas (2) to (6); None where an iteration was not measured in full."""
        if operator.processed > 0:
            operator.latency = operator.busy / operator.processed
        if not operator.latency or len(operator.arrivals) < self.samples:
            return None
        seconds = self.period * self.samples
        first = operator.arrivals[0][0]
        instants, counts = zip(*((end - first, count) for end, count in operator.arrivals))
        arrivals, slope = forecast(instants, counts, seconds if self.mode == "extrapolate" else 0.0)
        capable = capacity(operator.latency, unit.width, seconds)
        operator.capacities.append(capacity(operator.latency, 1, seconds))
        if self.correct:
            capable += correction(operator.capacities, unit.width)
        activity = activity_level(arrivals, operator.waiting, capable)
        return _Judged(activity, slope, arrivals, operator.waiting, capable)

    def _act(self, view: RunView, bolts: dict[str, UnitView], judged: dict[str, _Judged]) -> Sequence[Action]:
        local = dict.fromkeys(bolts, NOTHING)
        for name, j in judged.items():
            if not self._operators[name].rest:
                local[name] = local_action(j.activity, j.slope, self.theta_min, self.theta_max, self.dead_band)
        free = view.free_slots
        degrees: dict[str, int] = {}

        def passes(name: str, action: str) -> bool:
            nonlocal free
            degrees[name] = self._degree(view, bolts[name], judged.get(name), action, free)
            free -= max(0, degrees[name] - bolts[name].width)
            return degrees[name] != bolts[name].width or not self.propagate_only_if_changed

        decided = global_actions(bolts, view.senders, local, passes)
        actions: list[Action] = []
        for name, unit in bolts.items():
            operator = self._operators[name]
            operator.rest = max(0, operator.rest - 1)
            if degrees[name] != unit.width:
                operator.rest = self.grace
                reason = self._reason(unit, judged[name], local[name], decided[name], degrees[name])
                actions.append(Rescale(reason, degrees[name], unit=name))
        return actions

    def _degree(self, view: RunView, unit: UnitView, judged: _Judged | None, action: str, free: int) -> int:
        if judged is None or unit.name not in view.managed or unit.changing or self._operators[unit.name].rest:
            return unit.width
        most = unit.width + free if unit.plan.max_parallelism is None else unit.plan.max_parallelism
        return new_degree(action, unit.width, judged.activity, max(most, 1), unit.plan.min_parallelism)

    def _reason(self, unit: UnitView, judged: _Judged, local: str, action: str, degree: int) -> str:
        seconds = self.period * self.samples
        said = (
            f"{judged.arrivals:,.0f} tuples expected in {seconds:g} s and {judged.waiting:,.0f} waiting are "
            f"{judged.activity:.2f} of what {unit.width} can process: {band(judged.activity, self.theta_min, self.theta_max)}"
        )
        if action == SCALE_OUT and local != SCALE_OUT:
            return f"{said}, but its sender is scaled out; {degree}"
        trend = "increasing" if judged.slope > self.dead_band else "not increasing"
        return f"{said}, {trend}; {degree}"
