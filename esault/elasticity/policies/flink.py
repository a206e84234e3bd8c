"""The policy `flink`: the autoscaler of the Apache Flink Kubernetes operator (module flink-autoscaler).

Read in AutoScalerOptions, ScalingMetricCollector, ScalingMetricEvaluator, JobVertexScaler, DelayedScaleDown and
ScalingExecutor of github.com/apache/flink-kubernetes-operator at 6e9caeb (July 2026). It is DS2's walk over rates of a
long window, with reserves:

    TPR      = tuples in a second / busy share                  (true processing rate of the whole unit)
    target   = tuples a second due, from the sources on by the ratios of edges; a source: read + growth of its lag
    catch-up = backlog / catch_up_duration, passed on by the same ratios; a source's lag, and what waits in inboxes (there it
               would wait at the source)
    capacity(u, restart) = catch-up + target / u + (restart ? target * restart_time / catch_up_duration : 0)
    n        = ceil(width * min(max(capacity(target utilisation, yes) / TPR, 1 - down), 1 + up))

All units change at once when one of them stands outside of its bounds: TPR < capacity(upper, no) or > capacity(lower,
yes). A shrinking waits for `scale_down_interval` and takes the widest recommendation of it. Nothing is decided before
`metrics_window` is full, which begins `stabilization_interval` after the start and after each change of any unit.

Taken as they are: names (dots and dashes are underscores), defaults and order. Not taken: alignment to key groups and
partitions (there are neither here), memory, quotas and excluded periods, tracked restart times, observed scalability,
the observed rate of sources (they are not scaled here), the rounding of capacities to whole tuples a second. When
places are short the change is cut to what there is; there it would not be made. Where a spout's lag is unknown it is
taken as none, as there.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from esault.elasticity.action import Action, Rescale
from esault.elasticity.limits import above_zero, granted
from esault.elasticity.policies.flink_metrics import Collected, Evaluated, Evaluation
from esault.elasticity.view import RunView
from esault.errors import UsageError
from esault.value_class import value_class

__all__ = ["Flink"]

#: what is lost in floating point, of seconds and of sub-units
_DUST = 1e-9


@value_class(frozen=True)
class _Recommendation:
    at: float
    n: int
    outside: bool


@dataclass
class _Delayed:
    """A scale-down that waits: when it was first recommended, and the recommendations since that may still be the widest."""

    first: float
    recent: deque[_Recommendation] = field(default_factory=deque)

    def add(self, found: _Recommendation) -> None:
        while self.recent and self.recent[-1].n <= found.n:
            self.recent.pop()
        self.recent.append(found)

    def widest(self, since: float) -> _Recommendation:
        while self.recent[0].at < since:
            self.recent.popleft()
        return self.recent[0]


@dataclass
class Flink:
    """Parameters by the operator's names without `job.autoscaler.`; seconds and shares."""

    #: kubernetes.operator.reconcile.interval: seconds between two looks, and length of the engine's windows
    reconcile_interval: float = 60.0
    #: share of its time that a sub-unit should be busy
    utilization_target: float = 0.7
    #: how far utilisation may be from the target, both ways
    target_utilization_boundary: float = 0.3
    #: upper bound of utilisation in place of target + boundary; 0: not set
    utilization_max: float = 0.0
    #: lower bound in place of target - boundary; 0: not set
    utilization_min: float = 0.0
    #: rates are taken over so long
    metrics_window: float = 900.0
    #: after a start or change so long is not measured
    stabilization_interval: float = 300.0
    #: a shrinking must have been recommended for so long, and the widest recommendation of that time counts; 0: at once
    scale_down_interval: float = 3600.0
    #: most of its width that a unit loses in one change
    scale_down_max_factor: float = 0.6
    #: most of its width that a unit gains in one change
    scale_up_max_factor: float = 100_000.0
    #: time in which a backlog should be gone after a change; 0: backlogs do not count
    catch_up_duration: float = 1800.0
    #: time that a change is expected to take
    restart_time: float = 300.0
    #: a lag of so many seconds means that a backlog is worked off, which is not taken for a too narrow unit
    backlog_processing_lag_threshold: float = 300.0
    #: narrowest and widest width, besides the unit's own bounds
    vertex_min_parallelism: int = 1
    vertex_max_parallelism: int = 200
    #: whose busy share stands for the unit: of the busiest sub-unit, their mean, or of the idlest
    metrics_busy_time_aggregator: str = field(default="MAX", metadata={"choices": ("MAX", "AVG", "MIN")})
    #: no further growth of a unit whose last one brought too little
    scaling_effectiveness_detection_enabled: bool = False
    #: share of the expected gain below which a growth was in vain
    scaling_effectiveness_threshold: float = 0.1
    #: of the engine: length of the aligned windows
    period: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        above_zero("flink", reconcile_interval=self.reconcile_interval, utilization_target=self.utilization_target)
        above_zero("flink", metrics_window=self.metrics_window)
        for name in ("utilization_target", "utilization_max", "utilization_min", "scale_down_max_factor"):
            if getattr(self, name) > 1:
                raise UsageError(f"policy 'flink': {name}={getattr(self, name):g} is a share, at most 1")
        self.period = self.reconcile_interval
        self._collected = Collected(self.metrics_window, self.metrics_busy_time_aggregator)
        self._delayed: dict[str, _Delayed] = {}
        #: unit -> (width, TPR before, TPR expected) of its last growth
        self._grown: dict[str, tuple[int, float, float]] = {}

    def decide(self, view: RunView) -> Sequence[Action]:
        """One reconciliation."""
        if any(u.changing for u in view.units.values()):
            self._collected.clear()
            return ()
        changes = [u.changed_at for u in view.units.values() if u.changed_at is not None]
        running_since = max([view.now - view.since_start, *changes])
        if not self._collected.add(view, running_since + self.stabilization_interval):
            return ()
        evaluation = self._collected.evaluate(self.catch_up_duration)
        backlog = evaluation.lag_seconds > self.backlog_processing_lag_threshold
        found = {name: one for name in view.managed if (one := self._recommended(view, name, evaluation, backlog))}
        if not any(one.outside for one in found.values()):
            return ()
        return self._execute(view, found, evaluation)

    def _execute(self, view: RunView, found: Mapping[str, _Recommendation], evaluation: Evaluation) -> Sequence[Action]:
        actions = []
        for name, n in granted(view, {name: one.n for name, one in found.items()}).items():
            width, rates = view.units[name].width, evaluation.units[name]
            if n == width:
                continue
            self._grown.pop(name, None)
            if n > width:
                self._grown[name] = (n, rates.capacity, rates.capacity / width * n)
            needed = self._capacity(rates, self.utilization_target, True)
            reason = f"it can do {rates.capacity:,.1f}/s and should be able to do {needed:,.1f}/s for {rates.target:,.1f}/s due"
            actions.append(Rescale(f"{reason}: {n} rather than {width}", n, unit=name))
        if actions:
            self._delayed.clear()
        return actions

    def _capacity(self, rates: Evaluated, utilization: float, restart: bool) -> float:
        """Tuples a second that a unit must be able to do (getTargetProcessingCapacity)."""
        utilization = min(max(utilization, 0.0), 1.0)
        if utilization <= _DUST:
            return math.inf
        reserve = 0.0
        if restart and self.catch_up_duration > 0:
            reserve = rates.target * self.restart_time / self.catch_up_duration
        return rates.catch_up + reserve + rates.target / utilization

    def _outside(self, rates: Evaluated, backlog: bool) -> bool:
        upper = self.utilization_max or self.utilization_target + self.target_utilization_boundary
        lower = self.utilization_min or self.utilization_target - self.target_utilization_boundary
        if backlog:
            upper, lower = 1.0, 0.0
        return rates.capacity < self._capacity(rates, upper, False) or rates.capacity > self._capacity(
            rates, lower, True
        )

    def _recommended(self, view: RunView, name: str, evaluation: Evaluation, backlog: bool) -> _Recommendation | None:
        """The other width that the unit should have now, if any (computeScaleTargetParallelism)."""
        rates, width, now = evaluation.units[name], view.units[name].width, view.now
        factor = self._capacity(rates, self.utilization_target, True) / rates.capacity
        factor = min(max(factor, 1.0 - self.scale_down_max_factor), 1.0 + self.scale_up_max_factor)
        n = math.ceil(factor * width - _DUST)
        n = min(max(n, min(width, self.vertex_min_parallelism)), max(width, self.vertex_max_parallelism))
        plan = view.units[name].plan
        n = max(n, plan.min_parallelism)
        if plan.max_parallelism is not None:
            n = min(n, plan.max_parallelism)
        outside = self._outside(rates, backlog)
        if n >= width:
            self._delayed.pop(name, None)
            return (
                None if n == width or self._in_vain(name, width, rates.capacity) else _Recommendation(now, n, outside)
            )
        if self.scale_down_interval <= 0:
            return _Recommendation(now, n, outside)
        delayed = self._delayed.setdefault(name, _Delayed(now))
        delayed.add(_Recommendation(now, n, outside))
        since = now - self.scale_down_interval
        return None if since < delayed.first - _DUST else delayed.widest(since)

    def _in_vain(self, name: str, width: int, capacity: float) -> bool:
        """The last growth of the unit brought less than it should have (detectIneffectiveScaleUp)."""
        grown = self._grown.get(name)
        if grown is None or not self.scaling_effectiveness_detection_enabled or grown[0] != width:
            return False
        _, before, expected = grown
        return (capacity - before) / (expected - before) < self.scaling_effectiveness_threshold
