"""Metrics of the policy `flink`: windows of all units over `metrics_window`, and the rates that follow from them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

from esault.elasticity.estimators.useful_time import UsefulTime
from esault.elasticity.view import RunView, UnitView, UnitWindow
from esault.value_class import value_class

__all__ = ["Collected", "Evaluated", "Evaluation"]

_DUST = 1e-9


@value_class(frozen=True)
class Evaluated:
    """Tuples a second of one unit."""

    #: it can do, with the width it has (TRUE_PROCESSING_RATE); infinite when it had nothing to do
    capacity: float
    #: due for it (TARGET_DATA_RATE)
    target: float
    #: due for it besides, while backlogs are worked off (CATCH_UP_DATA_RATE)
    catch_up: float


@value_class(frozen=True)
class Evaluation:
    """All units in one metrics window."""

    units: Mapping[str, Evaluated]
    #: the largest backlog, in seconds of what its unit takes
    lag_seconds: float


@value_class(frozen=True)
class _Point:
    windows: Mapping[str, UnitWindow]
    #: unit -> busy share of the sub-unit that stands for it
    loads: Mapping[str, float]


class Collected:
    """The last `seconds` of windows since the last change."""

    def __init__(self, seconds: float, aggregator: str) -> None:
        """`aggregator`: MAX, AVG or MIN, over the busy shares of a unit's sub-units."""
        self._seconds = seconds
        self._aggregator = aggregator
        self._points: deque[_Point] = deque()
        self._useful = UsefulTime()
        self._senders: Mapping[str, tuple[str, ...]] = {}

    def clear(self) -> None:
        """Drop all measurements: they are no longer true."""
        self._points.clear()

    def add(self, view: RunView, stable_from: float) -> bool:
        """Take the view's windows if they began after `stable_from`; whether enough is there to be judged."""
        windows = {n: u.window for n, u in view.units.items() if u.window is not None and u.window.seconds > 0}
        if len(windows) < len(view.units):
            return False
        start = min(w.start for w in windows.values())
        if self._points and self._start(0) < stable_from - _DUST:
            self._points.clear()
        if start < stable_from - _DUST:
            return False
        self._senders = view.senders
        self._points.append(_Point(windows, {n: self._load(view.units[n]) for n in windows}))
        end = view.now
        while len(self._points) > 1 and self._start(1) <= end - self._seconds + _DUST:
            self._points.popleft()
        return end - self._start(0) >= self._seconds - _DUST

    def _start(self, i: int) -> float:
        return min(w.start for w in self._points[i].windows.values())

    def _load(self, unit: UnitView) -> float:
        mean = self._useful.share(unit)
        shares = [sample.busy for sample in unit.samples if sample.window > 0]
        if self._aggregator == "AVG" or not shares:
            return mean
        one = max(shares) if self._aggregator == "MAX" else min(shares)
        return min(1.0, one * self._useful.overhead(unit.name))

    def evaluate(self, catch_up_duration: float) -> Evaluation:
        """Rates of all units, senders first."""
        first, last = self._points[0].windows, self._points[-1].windows
        units: dict[str, Evaluated] = {}
        lag_seconds = 0.0
        for name in last:
            senders = self._senders.get(name, ())
            taken = self._taken(name)
            if senders:
                ratios = {s: self._ratio(s, name) for s in senders}
                target = sum(units[s].target * ratio for s, ratio in ratios.items())
                catch_up = sum(units[s].catch_up * ratio for s, ratio in ratios.items())
                # There an inbox holds next to nothing: what waits here would be a lag of the source.
                backlog = last[name].waiting
            else:
                lag, before = last[name].lag, first[name].lag_before
                growth = 0.0 if lag is None or before is None else (lag - before) / self._length()
                target, catch_up, backlog = max(0.0, taken + growth), 0.0, lag or 0.0
            if catch_up_duration > 0:
                catch_up += backlog / catch_up_duration
            if backlog > 0:
                lag_seconds = max(lag_seconds, backlog / taken if taken > 0 else math.inf)
            load = sum(point.loads[name] for point in self._points) / len(self._points)
            units[name] = Evaluated(taken / load if taken > 0 and load > 0 else math.inf, target, catch_up)
        return Evaluation(units, lag_seconds)

    def _length(self) -> float:
        return sum(next(iter(point.windows.values())).seconds for point in self._points)

    def _taken(self, name: str) -> float:
        """Tuples a second that a spout read, a bolt processed (NUM_RECORDS_IN)."""
        source = not self._senders.get(name)
        count = sum(p.windows[name].arrivals if source else p.windows[name].processed for p in self._points)
        return count / self._length()

    def _emitted(self, name: str) -> float:
        return sum(point.windows[name].emitted for point in self._points) / self._length()

    def _ratio(self, sender: str, receiver: str) -> float:
        """Tuples that come to the receiver for one that the sender takes (computeEdgeOutputRatio)."""
        taken = self._taken(sender)
        if taken <= 0:
            return 0.0
        return max(0.0, self._flow(sender, receiver)) / taken

    def _flow(self, sender: str, receiver: str) -> float:
        """Tuples a second along one edge, in the three cases of computeEdgeDataRate.

        There tuples that wait are still the sender's, so that what the receiver takes is what crossed the edge. Here they wait
        in its inbox, and what crossed is what arrived.
        """
        others = [s for s in self._senders[receiver] if s != sender]
        if not others:
            return self._arrived(receiver)
        if all(self._receivers(s) == 1 for s in others):
            return self._arrived(receiver) - sum(self._emitted(s) for s in others)
        return self._emitted(sender)

    def _arrived(self, name: str) -> float:
        return sum(point.windows[name].arrivals for point in self._points) / self._length()

    def _receivers(self, name: str) -> int:
        return sum(name in senders for senders in self._senders.values())
