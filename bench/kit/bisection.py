"""The rate that an engine can sustain: runs at rates that are set, open loop, between one that it keeps up with and one that it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.kit.measure import Run

__all__ = ["BEHIND", "CLOSE", "CLOSE_QUICK", "MOST", "SHORTEST", "Trials", "behind", "bisect"]

#: of the time that the tuples take to become due: the last one may be late by that; a rate this much too high makes it so
BEHIND = 0.05
#: seconds; to be behind by less is not to be behind
SHORTEST = 0.1
#: bisection ends when the bounds are so close; with --quick the second
CLOSE, CLOSE_QUICK = 0.05, 0.2
#: tuples of a run at most
MOST = 2_000_000


def bisect(sustains: Callable[[float], bool], low: float, high: float, close: float = CLOSE) -> float:
    """The highest rate found that is sustained, between `low`, which is taken to be, and `high`; within `close` of one that is not.

    If `high` is sustained it is doubled first, twice at most: then that is what is found.
    """
    for _ in range(3):
        if not sustains(high):
            break
        low, high = high, 2 * high
    else:
        return low
    while high - low > close * high:
        middle = (low + high) / 2
        if sustains(middle):
            low = middle
        else:
            high = middle
    return low


class Trials:
    """Runs at set rates of so many `seconds`, with `most` tuples at most; each is printed and kept in `made`.

    A rate is sustained if the last tuple is done no later than `share` of the run's time behind when it was due, and `spare` seconds,
    which is what an engine takes at any rate.
    """

    def __init__(
        self,
        run: Callable[[int, float], Run],
        seconds: float,
        most: int = MOST,
        share: float = BEHIND,
        spare: float = 0.0,
    ) -> None:
        """`run(tuples, rate)` gives a run with its `seconds` and `latency_ms`."""
        self._run = run
        self._seconds = seconds
        self._most = most
        self._share = share
        self._spare = spare
        self.made: list[dict[str, Any]] = []

    def sustains(self, rate: float) -> bool:
        """Return whether this rate is."""
        tuples = min(self._most, max(1, int(rate * self._seconds)))
        run = self._run(tuples, rate)
        late = behind(run, tuples, rate)
        kept_up = late <= self._spare + max(SHORTEST, self._share * tuples / rate)
        figures = {"rate": rate, "tuples": tuples, "behind_seconds": late, "p99_ms": run["latency_ms"]["p99"]}
        self.made.append({**figures, "sustained": kept_up})
        print(f"    {rate:,.0f}/s: {late:.2f} s behind after {tuples / rate:.1f} s", flush=True)
        return kept_up


def behind(run: Run, tuples: int, rate: float) -> float:
    """Seconds from when the last tuple of a run at a set rate was due to when all was done."""
    return float(run["seconds"]) - (tuples - 1) / rate
