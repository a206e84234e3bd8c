"""The policy `hpa`: what Kubernetes does to a deployment by itself, to each unit alone.

The HorizontalPodAutoscaler (kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale;
pkg/controller/podautoscaler in kubernetes/kubernetes), with a sub-unit for a pod and its busy share for the use of the
processor that it requested:

    desired = ceil(current * utilisation / target), nothing within `tolerance` of the target

then the behaviour's rules: never below the highest recommendation of `scale_down_stabilization_window` seconds, never above the
lowest of `scale_up_stabilization_window`, and in `policy_period` seconds at most `scale_up_percent` or `scale_up_pods`
more, whichever is more, and at most `scale_down_percent` fewer. Defaults are the documented ones.

Other than there: a sub-unit cannot use more than what it requested, so that a full unit grows by 1 / target a look and
its backlog is not seen; sub-units that started within a window count as idle before, in both directions (there: only
when growing). A unit that is changing is not looked at.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from esault.elasticity.action import Action, Rescale
from esault.elasticity.estimators.useful_time import UsefulTime
from esault.elasticity.limits import above_zero, limits
from esault.elasticity.view import RunView, UnitView

__all__ = ["HPA"]

#: what is lost in floating point is not worth a sub-unit
_DUST = 1e-9


@dataclass
class _Scaled:
    """The memory of one unit."""

    #: (at, parallelism)
    recommendations: deque[tuple[float, int]] = field(default_factory=deque)
    #: (at, sub-units more or fewer)
    changes: deque[tuple[float, int]] = field(default_factory=deque)


@dataclass
class HPA:
    """Parameters by the names of the controller's flags and of the `behavior` of autoscaling/v2; seconds and shares."""

    #: seconds between two looks, and length of the windows (--horizontal-pod-autoscaler-sync-period)
    sync_period: float = 15.0
    #: share of its time that a sub-unit should be busy (targetCPUUtilizationPercentage, 80 % where nothing is said)
    target: float = 0.8
    #: share by which utilisation may differ from the target (--horizontal-pod-autoscaler-tolerance)
    tolerance: float = 0.1
    #: no narrower than the widest recommendation of so many seconds
    scale_down_stabilization_window: float = 300.0
    #: no wider than the narrowest recommendation of so many seconds
    scale_up_stabilization_window: float = 0.0
    #: of the rules below
    policy_period: float = 15.0
    #: so many more per cent in `policy_period`
    scale_up_percent: float = 100.0
    #: or so many more sub-units, whichever is more
    scale_up_pods: int = 4
    #: so many fewer per cent in `policy_period`
    scale_down_percent: float = 100.0
    #: "busy": share of time that it is not idle; "cpu": of a processor, where the runtime can tell
    metric: str = field(default="busy", metadata={"choices": ("busy", "cpu")})
    #: of the engine: length of the aligned windows
    period: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        above_zero("hpa", sync_period=self.sync_period, target=self.target, policy_period=self.policy_period)
        self.period = self.sync_period
        self._scaled: dict[str, _Scaled] = {}
        self._useful = UsefulTime()

    def decide(self, view: RunView) -> Sequence[Action]:
        """One look at each managed unit, by itself."""
        actions = []
        for name in view.managed:
            unit = view.units[name]
            scaled = self._scaled.get(name)
            if scaled is None:
                scaled = self._scaled[name] = _Scaled(deque([(view.now, unit.width)]))
            used = self._utilisation(unit)
            if unit.changing or used is None:
                continue
            recommended = self._recommended(unit.width, used)
            n = self._stable(scaled, view.now, unit.width, recommended)
            n = self._paced(scaled, view.now, unit.width, n)
            least, most = limits(unit, view.free_slots)
            n = min(max(n, least), most)
            if n != unit.width:
                scaled.changes.append((view.now, n - unit.width))
                reason = f"{used:.0%} busy, {self.target:.0%} wanted: {n} rather than {unit.width}"
                actions.append(Rescale(reason, n, unit=name))
        return actions

    def _utilisation(self, unit: UnitView) -> float | None:
        """Mean share in use; None where nothing is known."""
        if self.metric == "cpu":
            known = [sample.cpu for sample in unit.samples if sample.cpu is not None]
            return sum(known) / len(known) if known else None
        if unit.window is None or unit.window.seconds <= 0:
            return None
        return self._useful.share(unit)

    def _recommended(self, width: int, used: float) -> int:
        ratio = used / self.target
        if abs(1.0 - ratio) <= self.tolerance:
            return width
        return math.ceil(ratio * width - _DUST)

    def _stable(self, scaled: _Scaled, now: float, width: int, recommended: int) -> int:
        """The width that moves least among the recommendations that still count."""
        longest = max(self.scale_up_stabilization_window, self.scale_down_stabilization_window)
        while scaled.recommendations and scaled.recommendations[0][0] <= now - longest:
            scaled.recommendations.popleft()
        scaled.recommendations.append((now, recommended))
        lowest = min(
            (n for at, n in scaled.recommendations if at > now - self.scale_up_stabilization_window),
            default=recommended,
        )
        highest = max(
            (n for at, n in scaled.recommendations if at > now - self.scale_down_stabilization_window),
            default=recommended,
        )
        return min(max(width, min(lowest, recommended)), max(highest, recommended))

    def _paced(self, scaled: _Scaled, now: float, width: int, n: int) -> int:
        """Within what one `policy_period` allows."""
        while scaled.changes and scaled.changes[0][0] <= now - self.policy_period:
            scaled.changes.popleft()
        if n > width:
            before = width - sum(change for _, change in scaled.changes if change > 0)
            return min(
                n, max(before + self.scale_up_pods, math.ceil(before * (1 + self.scale_up_percent / 100) - _DUST))
            )
        before = width - sum(change for _, change in scaled.changes if change < 0)
        return max(n, int(before * (1 - self.scale_down_percent / 100) + _DUST))
