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
            mean = max(self.mean, 1.0)
            surprise = (rate - self.mean) ** 2 * seconds / mean
            # A jump says little about chance.
            surprise = min(surprise, CHANGED**2 * max(self.dispersion, 1.0) / 4)
            self._learnt += 1
            self.dispersion += max(LEARNING, 1 / self._learnt) * (surprise - self.dispersion)
        self._windows.append((rate * seconds, seconds))
        while self.seconds > self._longest and len(self._windows) > 1:
            self._windows.popleft()
        self._cut()

    def _cut(self) -> None:
        """Forget what is from before a change."""
        windows = list(self._windows)
        for old in range(len(windows) - 1, 0, -1):
            before, after = windows[:old], windows[old:]
            n1, t1 = sum(n for n, _ in before), sum(t for _, t in before)
            n2, t2 = sum(n for n, _ in after), sum(t for _, t in after)
            mean = max((n1 + n2) / (t1 + t2), 1.0)
            error = math.sqrt(max(self.dispersion, 1.0) * mean * (1 / t1 + 1 / t2))
            if abs(n1 / t1 - n2 / t2) > CHANGED * error:
                for _ in range(old):
                    self._windows.popleft()
                return

    @property
    def seconds(self) -> float:
        """How long the rate has been what it is, as far as is remembered."""
        return sum(t for _, t in self._windows)

    @property
    def mean(self) -> float:
        """The rate, a second."""
        seconds = self.seconds
        return sum(n for n, _ in self._windows) / seconds if seconds else 0.0

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
