"""Latencies with weights: a log-scaled histogram and means by second."""

from __future__ import annotations

import math
from collections import defaultdict

__all__ = ["Latencies"]

#: bins for a factor of e: each is 2 % wide
FINE = 50.0
#: seconds below which all count as this
LEAST = 1e-5


class Latencies:
    """Of fluid amounts of tuples."""

    def __init__(self) -> None:
        self._bins: dict[int, float] = defaultdict(float)
        self.count = 0.0
        self._sum = 0.0
        self.most = 0.0
        #: second in which they were done -> [tuples, sum of latencies, largest]
        self.seconds: dict[int, list[float]] = {}

    def add(self, at: float, seconds: float, amount: float) -> None:
        """So many tuples were done at that moment, after so long."""
        seconds = max(seconds, LEAST)
        self._bins[round(math.log(seconds) * FINE)] += amount
        self.count += amount
        self._sum += seconds * amount
        self.most = max(self.most, seconds)
        each = self.seconds.setdefault(int(at), [0.0, 0.0, 0.0])
        each[0] += amount
        each[1] += seconds * amount
        each[2] = max(each[2], seconds)

    @property
    def mean(self) -> float:
        """Seconds; nan when there are none."""
        return self._sum / self.count if self.count else math.nan

    def percentile(self, share: float) -> float:
        """Seconds that this share of tuples took at most, to 2 %; nan when there are none."""
        if not self.count:
            return math.nan
        reached = 0.0
        for index in sorted(self._bins):
            reached += self._bins[index]
            if reached >= share * self.count - 1e-9:
                return math.exp(index / FINE)
        return self.most

    def below(self, seconds: float) -> float:
        """Share of tuples that took less."""
        edge = math.log(seconds) * FINE
        return sum(n for i, n in self._bins.items() if i < edge) / self.count if self.count else math.nan
