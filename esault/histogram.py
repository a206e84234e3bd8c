"""Histogram: how often which duration was seen, in buckets that grow by a tenth. Cheap to record, exact to add up."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import exp, log

__all__ = ["Histogram"]

#: each bucket's upper bound is this times its lower one; its middle is at most sqrt(1.1) - 1 = 4.9 % off
GROWTH = 1.1
#: seconds; what is shorter counts as this
FLOOR = 1e-6
#: seconds (about 30 years); what is longer counts as this
CEILING = 1e9

_PER_LOG = 1 / log(GROWTH)
_SHIFT = -log(FLOOR) * _PER_LOG
_LAST = int(log(CEILING) * _PER_LOG + _SHIFT)

#: greatest value, and (bucket, count) pairs by bucket
Snapshot = tuple[float, tuple[tuple[int, int], ...]]


class Histogram:
    """Counts of durations in seconds; quantiles are right within 5 %, `max` is exact.

    Below 1 us and above 1e9 s durations are not told apart. A negative one, of two clocks, counts as the shortest.
    """

    __slots__ = ("_counts", "count", "max")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        #: how many durations were recorded
        self.count = 0
        #: the longest of them, in seconds; 0.0 when there is none
        self.max = 0.0

    def record(self, seconds: float, n: int = 1) -> None:
        """Count a duration `n` times. Raises ValueError for nan and a negative `n`."""
        if n < 1:
            if n == 0:
                return
            raise ValueError(f"a duration cannot be counted {n} times")
        if FLOOR < seconds < CEILING:
            bucket = int(log(seconds) * _PER_LOG + _SHIFT)
        elif seconds != seconds:
            raise ValueError("nan is no duration")
        else:
            bucket = 0 if seconds <= FLOOR else _LAST
        counts = self._counts
        counts[bucket] = counts.get(bucket, 0) + n
        self.count += n
        self.max = max(self.max, seconds)

    def merge(self, other: Histogram) -> None:
        """Add what `other` has counted; the result is as if all had been recorded here."""
        counts = self._counts
        for bucket, n in list(other._counts.items()):
            counts[bucket] = counts.get(bucket, 0) + n
        self.count += other.count
        self.max = max(self.max, other.max)

    def since(self, before: Histogram) -> Histogram:
        """Return the values recorded after `before`, an earlier state of this histogram; its `max` is within 10 %."""
        recent = Histogram()
        recent._counts = {b: left for b, n in self._counts.items() if (left := n - before._counts.get(b, 0)) > 0}
        recent.count = sum(recent._counts.values())
        if recent.count:
            recent.max = min(exp((max(recent._counts) + 1 - _SHIFT) / _PER_LOG), self.max)
        return recent

    def quantile(self, q: float) -> float:
        """The duration, in seconds, that the share `q` (0..1) of all does not exceed; 0.0 when there is none."""
        if not 0 <= q <= 1:
            raise ValueError(f"a quantile is between 0 and 1, not {q}")
        if not self.count or q == 1:
            return self.max
        rank = q * self.count
        seen = bucket = 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen >= rank:
                break
        return min(exp((bucket + 0.5 - _SHIFT) / _PER_LOG), self.max)

    def above(self, seconds: float) -> int:
        """Return how many durations were longer than that; those in its own bucket, 10 % wide, count where the bucket's middle is longer."""
        if seconds >= self.max:
            return 0
        return sum(n for bucket, n in self._counts.items() if exp((bucket + 0.5 - _SHIFT) / _PER_LOG) > seconds)

    def summary_ms(self) -> dict[str, float]:
        """Median, 99th percentile and greatest, in milliseconds; zeros when there is none."""
        return {"p50": self.quantile(0.5) * 1e3, "p99": self.quantile(0.99) * 1e3, "max": self.max * 1e3}

    def between(self, bounds: Sequence[float]) -> tuple[tuple[int, ...], float]:
        """Counts up to each of these rising bounds, and above the last one; and the sum of all in seconds. Both within 5 %."""
        counts, total = [0] * (len(bounds) + 1), 0.0
        for bucket, n in self._counts.items():
            middle = exp((bucket + 0.5 - _SHIFT) / _PER_LOG)
            counts[bisect_left(bounds, middle)] += n
            total += n * middle
        return tuple(counts), total

    def snapshot(self) -> Snapshot:
        """A plain value that can travel."""
        return self.max, tuple(sorted(self._counts.items()))

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Histogram:
        """Of what `snapshot` gave. Raises ValueError unless it is that of a histogram."""
        histogram = cls()
        try:
            greatest, pairs = snapshot
            counts = dict(pairs)
            valid = len(counts) == len(pairs) and all(
                type(bucket) is type(n) is int and 0 <= bucket <= _LAST and n > 0 for bucket, n in pairs
            )
            valid = valid and isinstance(greatest, (int, float)) and greatest >= 0
        except TypeError as error:
            raise ValueError(f"no snapshot of a histogram: {error}") from None
        if not valid:
            raise ValueError(f"no snapshot of a histogram: {snapshot!r:.80}")
        histogram._counts = counts
        histogram.count = sum(counts.values())
        histogram.max = float(greatest)
        return histogram

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        s = self.summary_ms()
        return f"<Histogram of {self.count}: p50 {s['p50']:.3g} ms, p99 {s['p99']:.3g} ms, max {s['max']:.3g} ms>"
