"""The load that a source has offered so far: bins of several lengths, the period with which they repeat, and what that foretells.

Resolutions stand side by side, each with bins twice as long as those of the one before, and with the newest `MOST` of them: the finest
has the last twelve minutes second by second, the coarsest reaches back for weeks. A rhythm of 10 s is seen as sharply after a day as in
the first minute, and a rhythm of a day is seen too, when two of them have gone by.

Where the load leaves its rhythm (a storm closes the airports), what is foretold shrinks as far as the load has, until it comes back. A day of
half the load is not that: it may still rise by its hours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate
from operator import mul
from typing import Any

__all__ = ["LoadHistory"]

#: bins that are kept of each resolution, and resolutions: with bins of a second 68 days
MOST, RESOLUTIONS = 720, 14
#: bins that belong to a period at least, and periods that must have been seen
SHORTEST, SEEN = 6, 2.0
#: correlation of what was with what was one period before, from which it counts as repeating
REPEATS = 0.7
#: mean error of the foretold over the load's spread up to which it is believed
BELIEVED = 0.25
#: standard deviation over mean up to which a load is steady, and variance over that of chance from which there is more to it
STEADY, BEYOND = 0.1, 4.0
#: newest bins that are compared with those one period before; of which so many times as much must have come for the load to have left its rhythm
NEWEST, LEFT = 5, 4.0
#: bins between two searches for a period
SEARCH_EVERY = 8


class _Resolution:
    """The newest bins of one length."""

    def __init__(self, bin_seconds: float) -> None:
        self.bin_seconds = bin_seconds
        self.bins: list[float] = []
        #: of the bin that is open: tuples, and seconds
        self.count = 0.0
        self.length = 0.0
        #: in bins; None while none is known
        self.period: int | None = None
        #: share of what the rhythm foretells that comes as it looks: less than 1 where the load has left it
        self.trust = 1.0
        self._search_in = SEARCH_EVERY
        self._chance = 0.0

    def add(self, count: float, seconds: float, chance: float) -> list[float]:
        """So many tuples have come; the tuples of each bin that has ended by it."""
        self._chance = chance
        self.count += count
        self.length += seconds
        ended = []
        while self.length >= self.bin_seconds - 1e-6:
            share = min(1.0, self.bin_seconds / self.length)
            ended.append(self.count * share)
            self.bins.append(ended[-1] / self.bin_seconds)
            self.count *= 1.0 - share
            self.length = max(0.0, self.length - self.bin_seconds)
            self._search_in -= 1
        del self.bins[:-MOST]
        return ended

    def search(self) -> None:
        """Look for a period, now and then, and each time whether the load still keeps to it."""
        if self._search_in <= 0:
            self._search_in = SEARCH_EVERY
            self.period = self._find()
        self.trust = 1.0 if self.period is None else self._kept(self.period)

    def go_on(self, missed: float, finer: float) -> None:
        """Take so many seconds as gone since the last whole bin, filled by the rhythm; without one nothing of before stands.

        `finer`: of these, seconds that finer resolutions have not handed on yet.
        """
        if self.period is None:
            self.bins = []
        many = int(missed / self.bin_seconds)
        for _ in range(many % self.period if self.period is not None and many > MOST else many):
            if self.period is None:
                break
            self.bins.append(self.bins[-self.period])
        del self.bins[:-MOST]
        self.length = max(0.0, missed - many * self.bin_seconds - finer) if self.period is not None else 0.0
        self.count = self.length * self.bins[-self.period] if self.period is not None else 0.0

    @property
    def full(self) -> bool:
        """Return whether it no longer holds all that there was."""
        return len(self.bins) >= MOST

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
        # squares of the first so many
        squares = list(accumulate(map(mul, centred, centred), initial=0.0))
        best, best_lag = REPEATS, None
        previous, rising = 1.0, False
        for lag in range(2, longest + 1):
            over = math.sqrt(max(0.0, (squares[n] - squares[lag]) * squares[n - lag]))
            # `map` ends with the shorter one.
            correlation = sum(map(mul, centred[lag:], centred)) / over if over > 0 else 0.0
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

    def _kept(self, period: int) -> float:
        """Return what came of late, as a share of what came one period before (a bin earlier or later), where that is far more; else 1."""
        bins, n = self.bins, len(self.bins)
        newest = range(max(0, n - NEWEST), n)
        came = sum(bins[i] for i in newest)
        before = sum(
            min((bins[i - period + d] for d in (-1, 0, 1) if i - period + d >= 0), default=0.0) for i in newest
        )
        return came / before if before > LEFT * came else 1.0

    def _is_more_than_chance(self, bins: list[float]) -> bool:
        mean = sum(bins) / len(bins)
        spread = sum((b - mean) ** 2 for b in bins) / len(bins)
        return spread > max((STEADY * mean) ** 2, BEYOND * self._chance * mean / self.bin_seconds)

    def foretold(self, period: int, after: float, until: float) -> float | None:
        """The highest rate between so many seconds from now and so many, by what was so many bins ago; None: unknown."""
        n = len(self.bins)
        # The bin that is open now is number n.
        first = n + int((self.length + after) / self.bin_seconds)
        last = n + int((self.length + until) / self.bin_seconds)
        wanted = []
        for i in range(first, last + 1):
            back = i - period * math.ceil((i - n + 1) / period)
            if 0 <= back < n:
                wanted.append(self.bins[back])
        return self.trust * max(wanted) if wanted else None


class LoadHistory:
    """Takes (rate, seconds) of windows that follow each other; foretells by what was one period ago."""

    def __init__(self, bin_seconds: float = 1.0) -> None:
        """`bin_seconds`: length of the shortest bins."""
        #: the finest first
        self.resolutions = [_Resolution(bin_seconds)]

    def add(self, rate: float, seconds: float, chance: float = 0.0) -> None:
        """The next window. `chance`: variance over mean of counts that is no rhythm's doing, as far as is known."""
        counts, each = [rate * seconds], seconds
        for i in range(RESOLUTIONS):
            if i == len(self.resolutions):
                self.resolutions.append(_Resolution(2 * self.resolutions[-1].bin_seconds))
            own = self.resolutions[i]
            counts = [ended for count in counts for ended in own.add(count, each, chance)]
            # As long as a finer one holds all, there is nothing else to find.
            if i == 0 or own.period is not None or self.resolutions[i - 1].full:
                own.search()
            if not counts:
                return
            each = own.bin_seconds

    def snapshot(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        kept = [
            {"bins": [float(f"{rate:.5g}") for rate in each.bins], "period": each.period, "open": each.length}
            for each in self.resolutions
        ]
        return {"bin_seconds": self.resolutions[0].bin_seconds, "resolutions": kept}

    @classmethod
    def recalled(cls, snapshot: Mapping[str, Any], gone: float) -> LoadHistory:
        """A history that goes on `gone` seconds after the snapshot was taken. Raises KeyError, TypeError, ValueError for another thing.

        In between the load is taken to have gone by its rhythm. Where there was none, the past says nothing of what comes.
        """
        if not gone >= 0.0:
            raise ValueError(f"{gone:g} s are gone")
        history = cls(float(snapshot["bin_seconds"]))
        history.resolutions = []
        late = finer = 0.0
        for i, kept in enumerate(snapshot["resolutions"][:RESOLUTIONS]):
            each = _Resolution(float(snapshot["bin_seconds"]) * 2**i)
            each.bins = [float(rate) for rate in kept["bins"]][-MOST:]
            period = kept["period"]
            each.period = int(period) if period is not None and 0 < int(period) <= len(each.bins) else None
            late += float(kept["open"])
            each.go_on(late + gone, finer)
            finer += each.length
            history.resolutions.append(each)
        if not history.resolutions:
            raise ValueError("there is no resolution")
        return history

    @property
    def _found(self) -> _Resolution | None:
        """The finest resolution that shows a rhythm."""
        return next((each for each in self.resolutions if each.period is not None), None)

    @property
    def period(self) -> float | None:
        """Return the seconds after which the load repeats; None while that is unknown."""
        found = self._found
        return None if found is None or found.period is None else found.period * found.bin_seconds

    def foretold(self, after: float, until: float) -> float | None:
        """The highest rate between so many seconds from now and so many, by what was one period ago; None: unknown."""
        found = self._found
        if found is None or found.period is None:
            return None
        # A coarse bin that is open is filled a bin of the finer ones at a time: what those have not handed on yet is time gone by, too.
        late = sum(each.length for each in self.resolutions[: self.resolutions.index(found)])
        return found.foretold(found.period, after + late, until + late)
