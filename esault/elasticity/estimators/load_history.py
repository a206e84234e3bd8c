"""The load that a source has offered so far: bins of equal length, the period with which they repeat, and what that foretells.

A history of at most `MOST` bins; when it is full, pairs of bins are joined, so that it reaches back as far as a run has lasted.
"""

from __future__ import annotations

import math

__all__ = ["LoadHistory"]

#: bins that are kept
MOST = 720
#: bins that belong to a period at least, and periods that must have been seen
SHORTEST, SEEN = 6, 2.0
#: correlation of what was with what was one period before, from which it counts as repeating
REPEATS = 0.8
#: mean error of the foretold over the load's spread up to which it is believed
BELIEVED = 0.25
#: standard deviation over mean up to which a load is steady, and variance over that of chance from which there is more to it
STEADY, BEYOND = 0.1, 4.0
#: bins between two searches for a period
SEARCH_EVERY = 8


class LoadHistory:
    """Takes (rate, seconds) of windows that follow each other; foretells by what was one period ago."""

    def __init__(self, bin_seconds: float = 1.0) -> None:
        self.bin_seconds = bin_seconds
        self.bins: list[float] = []
        self._count = 0.0
        self._length = 0.0
        #: in bins; None while none is known
        self.period: int | None = None
        self._search_in = SEARCH_EVERY
        self._chance = 0.0

    def add(self, rate: float, seconds: float, chance: float = 0.0) -> None:
        """The next window. `chance`: variance over mean of counts that is no rhythm's doing, as far as is known."""
        self._chance = chance
        self._count += rate * seconds
        self._length += seconds
        while self._length >= self.bin_seconds - 1e-6:
            share = min(1.0, self.bin_seconds / self._length)
            self.bins.append(self._count * share / self.bin_seconds)
            self._count *= 1.0 - share
            self._length = max(0.0, self._length - self.bin_seconds)
            self._search_in -= 1
            if len(self.bins) >= MOST:
                self.bins = [(a + b) / 2 for a, b in zip(self.bins[::2], self.bins[1::2])]
                self.bin_seconds *= 2
                self._count = self._length = 0.0
                self.period = None
        if self._search_in <= 0:
            self._search_in = SEARCH_EVERY
            self.period = self._find()

    def _find(self) -> int | None:
        """The shortest lag at which the history correlates best with itself, if it does."""
        bins = self.bins
        n = len(bins)
        longest = int(n / SEEN)
        if longest < SHORTEST:
            return None
        mean = sum(bins) / n
        centred = [b - mean for b in bins]
        if not self._is_more_than_chance(bins):
            return None
        best, best_lag = REPEATS, None
        previous, rising = 1.0, False
        for lag in range(2, longest + 1):
            a, b = centred[lag:], centred[: n - lag]
            over = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
            correlation = sum(x * y for x, y in zip(a, b)) / over if over > 0 else 0.0
            if rising and correlation < previous and lag - 1 >= SHORTEST and previous > best + 0.02:
                best, best_lag = previous, lag - 1
            rising = correlation > previous
            previous = correlation
        if best_lag is None or not self._believed(best_lag):
            return None
        return best_lag

    def _believed(self, lag: int) -> bool:
        """Return whether the last period was foretold well by the one before."""
        bins = self.bins[-2 * lag :]
        errors = [
            min(abs(bins[i] - bins[i - lag + d]) for d in (-1, 0, 1) if i - lag + d >= 0) for i in range(lag, 2 * lag)
        ]
        spread = max(bins) - min(bins)
        return self._is_more_than_chance(bins[lag:]) and sum(errors) / lag < BELIEVED * spread

    def _is_more_than_chance(self, bins: list[float]) -> bool:
        mean = sum(bins) / len(bins)
        spread = sum((b - mean) ** 2 for b in bins) / len(bins)
        return spread > max((STEADY * mean) ** 2, BEYOND * self._chance * mean / self.bin_seconds)

    def foretold(self, after: float, until: float) -> float | None:
        """The highest rate between so many seconds from now and so many, by what was one period ago; None: unknown."""
        if self.period is None:
            return None
        n, lag = len(self.bins), self.period
        # The bin that is open now is number n.
        first = n + int((self._length + after) / self.bin_seconds)
        last = n + int((self._length + until) / self.bin_seconds)
        wanted = []
        for i in range(first, last + 1):
            back = i - lag * math.ceil((i - n + 1) / lag)
            if 0 <= back < n:
                wanted.append(self.bins[back])
        return max(wanted, default=None)
