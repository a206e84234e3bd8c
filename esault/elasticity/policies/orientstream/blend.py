"""Our own ensemble, `blend`: what is weak in ODRegression, done otherwise.

A learner counts by its recent error among the samples nearest to this one, not by what the majority says; one that lies far from
the others by its own measure counts little for this sample, however good it mostly is; no prediction leaves the range of what was
seen; and what all of them got wrong lately in this region is added, which also follows a drift faster than the learners do.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate

__all__ = ["Blend"]

#: samples that are remembered with the errors made
KEPT = 300
#: of them, those nearest to a sample make its region
NEAREST = 25
#: nearest samples that the error everywhere counts for in the error of a region
PRIOR = 10
#: nearest samples that "no common error" counts for
NO_BIAS = 5
#: weight of a learner: its error to minus this power
POWER = 2
#: from so many of its own errors away from the centre a learner's weight falls, by the square
FAR = 2.5
#: share of the newest sample in the error everywhere, once there are enough
NEWEST = 0.01
#: predictions may leave the range of what was seen by so much of it
BEYOND = 0.1
EPSILON = 1e-9


class Blend:
    """Combines the predictions of `learners` learners of one target."""

    def __init__(self, learners: int) -> None:
        self._errors = [1.0] * learners
        self._samples = 0
        #: (features, absolute errors, what was too little before the common error was added)
        self._kept: deque[tuple[tuple[float, ...], tuple[float, ...], float]] = deque(maxlen=KEPT)
        self._lows: list[float] = []
        self._highs: list[float] = []
        self._low = self._high = 0.0

    def combine(self, x: Mapping[str, float], predictions: Sequence[float]) -> float:
        """One prediction, in the target's unit. `x`: features by name, always the same names."""
        errors, bias = self._region(self._vector(x))
        return self._centre(self._clipped(predictions), errors) + bias

    def score(self, x: Mapping[str, float], predictions: Sequence[float], y: float) -> None:
        """Learn the target, after it was predicted."""
        point, clipped = self._vector(x), self._clipped(predictions)
        errors, _ = self._region(point)
        off = y - self._centre(clipped, errors)
        if not self._samples:
            self._low = self._high = y
            self._lows, self._highs = list(point), list(point)
        self._low, self._high = min(self._low, y), max(self._high, y)
        self._lows = [min(a, b) for a, b in zip(self._lows, point)]
        self._highs = [max(a, b) for a, b in zip(self._highs, point)]
        self._samples += 1
        newest = max(1.0 / self._samples, NEWEST)
        made = tuple(abs(y - p) for p in clipped)
        self._errors = [old + newest * (new - old) for old, new in zip(self._errors, made)]
        self._kept.append((point, made, off))

    @staticmethod
    def _vector(x: Mapping[str, float]) -> tuple[float, ...]:
        return tuple(x[name] for name in sorted(x))

    def _clipped(self, predictions: Sequence[float]) -> list[float]:
        if not self._samples:
            return list(predictions)
        margin = BEYOND * (self._high - self._low)
        return [min(self._high + margin, max(self._low - margin, p)) for p in predictions]

    def _region(self, point: tuple[float, ...]) -> tuple[list[float], float]:
        """Each learner's error near the point, and what all of them together had too little there."""
        if not self._kept:
            return list(self._errors), 0.0
        scales = [1.0 / (high - low) if high - low > EPSILON**9 else 1.0 for low, high in zip(self._lows, self._highs)]

        def distance(kept: tuple[tuple[float, ...], tuple[float, ...], float]) -> float:
            # A feature that has hardly varied may be far from all that it was: `**` would raise OverflowError.
            return sum((off := (a - b) * s) * off for a, b, s in zip(point, kept[0], scales))

        near = heapq.nsmallest(NEAREST, self._kept, key=distance)
        errors = [
            (sum(made[i] for _, made, _ in near) + PRIOR * error) / (len(near) + PRIOR)
            for i, error in enumerate(self._errors)
        ]
        return errors, sum(off for _, _, off in near) / (len(near) + NO_BIAS)

    @staticmethod
    def _centre(predictions: Sequence[float], errors: Sequence[float]) -> float:
        weights = [(error + EPSILON) ** -POWER for error in errors]
        centre = _weighted_median(predictions, weights)
        for _ in range(3):
            near = [
                w * min(1.0, (FAR * (error + EPSILON) / (abs(p - centre) + EPSILON)) ** 2)
                for p, w, error in zip(predictions, weights, errors)
            ]
            centre = sum(p * w for p, w in zip(predictions, near)) / sum(near)
        return centre


def _weighted_median(values: Sequence[float], weights: Sequence[float]) -> float:
    """The value at which the weights of those up to it reach half of all."""
    ranked = sorted(zip(values, weights))
    reached = accumulate(weight for _, weight in ranked)
    return next(value for (value, _), sum_ in zip(ranked, reached) if sum_ >= sum(weights) / 2 * (1 - EPSILON))
