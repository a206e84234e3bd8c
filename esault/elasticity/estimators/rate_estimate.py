"""A rate that may jump, from windows of counts: precise while it is steady, quick when it is not.

Like ADWIN (Bifet and Gavalda, 2007): the estimate is the mean over the longest recent time in which nothing says that the
rate has changed. How much windows differ by chance is learnt from the stream itself, as variance over mean (1 for single
tuples at random, the size of the burst for bursts).
"""

from __future__ import annotations

import math
from collections import deque

__all__ = ["RateEstimate"]

#: a difference of so many standard deviations is no chance
CHANGED = 3.5
#: mean of the square of a normal number that is cut at CHANGED**2 / 4
KEPT = 0.863
#: of the newest window in the dispersion
LEARNING = 0.05


class RateEstimate:
    """Takes (rate, seconds) of windows that follow each other."""

    def __init__(self, longest: float = 10.0, dispersion: float = 32.0) -> None:
        """`longest`: seconds that are remembered at most; `dispersion`: variance over mean to start with, tuples."""
        self._longest = longest
        #: (tuples, seconds), oldest first
        self._windows: deque[tuple[float, float]] = deque()
        self.dispersion = dispersion
        self._learnt = 1

    def add(self, rate: float, seconds: float) -> None:
        """The next window."""
        rate = max(0.0, rate)
        if self._windows:
            surprise = self._surprise(rate, seconds)
            if surprise is not None:
                # A jump says little about chance: it is cut, which makes the mean of what chance does less by a known share.
                surprise = min(surprise, CHANGED**2 * max(self.dispersion, 1.0) / 4) / KEPT
                self._learnt += 1
                self.dispersion += max(LEARNING, 1 / self._learnt) * (surprise - self.dispersion)
        self._windows.append((rate * seconds, seconds))
        while self.seconds > self._longest and len(self._windows) > 1:
            self._windows.popleft()
        self._cut()

    def _cut(self) -> None:
        """Forget what is from before a change."""
        count = sum(n for n, _ in self._windows)
        seconds = sum(t for _, t in self._windows)
        n2 = t2 = 0.0
        for old in range(len(self._windows) - 1, 0, -1):
            n, t = self._windows[old]
            n2, t2 = n2 + n, t2 + t
            if self._changed((count - n2, seconds - t2), (n2, t2)):
                for _ in range(old):
                    self._windows.popleft()
                return

    def _surprise(self, rate: float, seconds: float) -> float | None:
        """Return the variance over mean that the next window suggests; None: nothing."""
        return (rate - self.mean) ** 2 * seconds / max(self.mean, 1.0)

    def _changed(self, before: tuple[float, float], after: tuple[float, float]) -> bool:
        """Return whether (tuples, seconds) before and after are no chance."""
        (n1, t1), (n2, t2) = before, after
        chance = CHANGED**2 * max(self.dispersion, 1.0) * max((n1 + n2) / (t1 + t2), 1.0)
        return (n1 / t1 - n2 / t2) ** 2 > chance * (1 / t1 + 1 / t2)

    @property
    def seconds(self) -> float:
        """Return the seconds for which the rate has been what it is, as far as is remembered."""
        return sum(t for _, t in self._windows)

    @property
    def mean(self) -> float:
        """The rate, a second."""
        count = seconds = 0.0
        for n, t in self._windows:
            count, seconds = count + n, seconds + t
        return count / seconds if seconds else 0.0

    @property
    def error(self) -> float:
        """Its standard error, a second."""
        seconds = self.seconds
        return math.sqrt(max(self.dispersion, 0.0) * self.mean / seconds) if seconds else 0.0

    def recent(self, seconds: float) -> tuple[float, float]:
        """(mean, standard error) of the last so many seconds, or of all if that is less."""
        count = length = 0.0
        for n, t in reversed(self._windows):
            if length + t > seconds * 1.001 and length:
                break
            count, length = count + n, length + t
        if not length:
            return 0.0, 0.0
        mean = count / length
        return mean, math.sqrt(max(self.dispersion, 0.0) * mean / length)
