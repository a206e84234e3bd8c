"""A rate that may jump or drift, from counts: as `RateEstimate`, with two figures that fit counts better.

- **Chance from neighbours.** A window is compared with the one before and not with the mean of many, so a load that climbs does not look like one that
  varies: where it does, the rate is doubted just when it climbs, and growth waits. Bursts that fall on two windows fall on either with the
  same odds: the square of the difference over the sum is the size of a burst on average, however few there are.
- **A likelihood ratio** says what has changed (the G-test of two Poisson rates, of bursts of the size `dispersion`). Few bursts in a window are skewed: squares of
  differences, over a common variance, take one more burst than usual for a change. That many places are looked at is paid for (Bonferroni): it
  would be chance at one of them too often.
"""

from __future__ import annotations

import math

from esault.elasticity.estimators.rate_estimate import CHANGED, RateEstimate

__all__ = ["CountedRate"]


class CountedRate(RateEstimate):
    """Takes (rate, seconds) of windows that follow each other."""

    def __init__(self, longest: float = 10.0, dispersion: float = 32.0) -> None:
        """`longest`: seconds that are remembered at most; `dispersion`: variance over mean to start with, tuples."""
        super().__init__(longest, dispersion)
        self._before: float | None = None

    def add(self, rate: float, seconds: float) -> None:
        """The next window."""
        super().add(rate, seconds)
        self._before = max(0.0, rate)

    def _surprise(self, rate: float, seconds: float) -> float | None:
        both = rate + (self.mean if self._before is None else self._before)
        # Two windows in which nothing came do not tell how large bursts are.
        return (2 * rate - both) ** 2 * seconds / both if both > 0 else None

    def _changed(self, before: tuple[float, float], after: tuple[float, float]) -> bool:
        size = max(self.dispersion, 1.0)
        rate = (before[0] + after[0]) / (before[1] + after[1])
        ratio = sum(n / size * math.log(n / t / rate) for n, t in (before, after) if n > 0)
        return ratio > CHANGED**2 / 2 + math.log(len(self._windows) - 1)
