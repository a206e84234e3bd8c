"""Naive Bayes for a number: its range is cut into bins, and each bin's features are taken as Gaussian."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

__all__ = ["NaiveBayes"]

#: smallest variance of a feature within a bin
FLOOR = 1e-6
#: samples from which bins are made anew when the range of the target turns out wider
KEPT = 1000


class _Bin:
    """The statistics of one bin: count, mean of the target; mean and squared deviations of each feature."""

    __slots__ = ("count", "deviations", "mean", "means")

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self.means: dict[str, float] = {}
        self.deviations: dict[str, float] = {}

    def learn(self, x: Mapping[str, float], y: float) -> None:
        self.count += 1
        self.mean += (y - self.mean) / self.count
        for name, value in x.items():
            mean = self.means.get(name, 0.0)
            off = value - mean
            mean += off / self.count
            self.means[name] = mean
            self.deviations[name] = self.deviations.get(name, 0.0) + off * (value - mean)

    def score(self, x: Mapping[str, float], all_samples: int) -> float:
        """Logarithm of prior times likelihood; needs two samples."""
        score = math.log(self.count / all_samples)
        for name, value in x.items():
            variance = max(FLOOR, self.deviations.get(name, 0.0) / (self.count - 1))
            off = value - self.means.get(name, 0.0)
            score -= 0.5 * (math.log(2 * math.pi * variance) + off * off / variance)
        return score


class NaiveBayes:
    """John and Langley's learner, read as a regression (Wang et al. 2019): sum over bins of posterior times the bin's mean."""

    def __init__(self, bins: int = 10, low: float | None = None, high: float | None = None) -> None:
        """`bins` of equal width from `low` to `high`, both in the target's unit; without them the range follows what was seen."""
        self._fixed = low is not None and high is not None
        self._low = 0.0 if low is None else low
        self._high = 0.0 if high is None else high
        self._bins = [_Bin() for _ in range(bins)]
        self._kept: deque[tuple[dict[str, float], float]] = deque(maxlen=KEPT)
        self._mean = 0.0
        self._count = 0

    def predict(self, x: Mapping[str, float]) -> float:
        """The target for these features; 0 before the first sample, the mean until a bin has two."""
        known = [(b, b.score(x, self._count)) for b in self._bins if b.count > 1]
        if not known:
            return self._mean
        best = max(score for _, score in known)
        shares = [(b.mean, math.exp(score - best)) for b, score in known]
        return sum(mean * share for mean, share in shares) / sum(share for _, share in shares)

    def learn(self, x: Mapping[str, float], y: float) -> None:
        """One sample."""
        self._count += 1
        self._mean += (y - self._mean) / self._count
        if not self._fixed:
            self._kept.append((dict(x), y))
            if not self._low <= y <= self._high or self._count == 1:
                self._widen()
                return
        self._bin(y).learn(x, y)

    def _bin(self, y: float) -> _Bin:
        width = (self._high - self._low) / len(self._bins)
        at = int((y - self._low) / width) if width > 0 else 0
        return self._bins[min(max(at, 0), len(self._bins) - 1)]

    def _widen(self) -> None:
        """Bins over what is kept, and a tenth more on either side: so it happens rarely."""
        seen = [y for _, y in self._kept]
        margin = 0.1 * (max(seen) - min(seen))
        self._low, self._high = min(seen) - margin, max(seen) + margin
        self._bins = [_Bin() for _ in self._bins]
        self._count = len(seen)
        for x, y in self._kept:
            self._bin(y).learn(x, y)
