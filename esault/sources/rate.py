"""Due times of tuples that come at a set rate, which may change with time. No clock: seconds are passed in."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from esault.errors import SourceError, TopologyError

__all__ = ["Rate", "RateSpec"]

#: a rate per second; (seconds since the start, rate from then on) in order; or the rate as a function of the seconds
RateSpec: TypeAlias = float | Sequence[tuple[float, float]] | Callable[[float], float]

#: seconds for which the value of a function counts, taken in their middle
_GRID = 0.01


class Rate:
    """The arrivals of an open loop.

    With N(t) the integral of the rate over the first t seconds, tuple i = 0, 1, 2, ... is due at the first moment
    after which N exceeds i; at a constant rate r that is i / r. Of `parts` readers each has rate / parts, and they
    take turns: the first tuple of reader `part` is due when N is part / parts.
    """

    def __init__(self, spec: RateSpec, part: int = 0, parts: int = 1) -> None:
        self._share = 1 / parts
        self._steps = _steps(spec)
        # pieces of constant rate: where each starts, N there, the rate; the first ones are dropped when used up
        self._starts: list[float] = [0.0]
        self._counts: list[float] = [-part / parts]
        self._rates: list[float] = [0.0]
        self._next = next(self._steps, None)
        self._due = 0

    def due(self, seconds: float) -> int:
        """Return the number of tuples that are due within the first `seconds`; never less than it has said before."""
        while self._next is not None and self._next[0] <= seconds:
            start, rate = self._next
            self._next = next(self._steps, None)
            count = self._counts[-1] + self._rates[-1] * (start - self._starts[-1])
            rate *= self._share
            if start == self._starts[-1]:
                self._rates[-1] = rate
            elif rate != self._rates[-1]:
                self._starts.append(start)
                self._counts.append(count)
                self._rates.append(rate)
        count = self._counts[-1] + self._rates[-1] * max(0.0, seconds - self._starts[-1])
        whole = math.floor(count) + 1 if self._rates[-1] else math.ceil(count)
        self._due = max(self._due, whole)
        return self._due

    def time_of(self, index: int) -> float:
        """Return the time at which tuple `index` is due, in seconds since the start; it must be due already, and not forgotten."""
        piece = max(0, bisect_right(self._counts, index) - 1)
        rate = self._rates[piece]
        return self._starts[piece] + (index - self._counts[piece]) / rate if rate else self._starts[piece]

    def next_time(self, index: int) -> float:
        """Return the time of tuple `index`, which is not due yet, in seconds since the start; earlier where the rate changes before."""
        rate, change = self._rates[-1], math.inf if self._next is None else self._next[0]
        return min(self._starts[-1] + (index - self._counts[-1]) / rate, change) if rate else change

    def forget(self, index: int) -> None:
        """Forget the times of tuples before `index`: they are not asked for any more."""
        used = bisect_right(self._counts, index) - 1
        if used > 0:
            del self._starts[:used], self._counts[:used], self._rates[:used]


def _steps(spec: Any) -> Iterator[tuple[float, float]]:
    """Pairs of (seconds, rate from then on). Raises TopologyError for what is no rate."""
    if callable(spec):
        return _sampled(spec)
    if isinstance(spec, (list, tuple)):
        steps = [tuple(step) if isinstance(step, (list, tuple)) else (step,) for step in spec]
        if not steps or any(len(s) != 2 or not _is_rate(s[0]) or not _is_rate(s[1]) for s in steps):
            raise TopologyError(
                f"rate={spec!r}: write steps as (seconds since the start, tuples per second from then on), both at "
                "least 0"
            )
        if any(b[0] <= a[0] for a, b in pairwise(steps)):
            raise TopologyError(f"rate={spec!r}: the seconds of the steps must grow")
        if not any(rate for _, rate in steps):
            raise TopologyError(f"rate={spec!r}: no tuple would ever be offered; write a rate above 0 in one step")
        return iter([(float(seconds), float(rate)) for seconds, rate in steps])
    if not _is_rate(spec) or not spec:
        raise TopologyError(
            f"rate={spec!r}: write tuples per second as a number above 0, a list of (seconds, rate) steps, or a "
            "function of the seconds since the start; as fast as possible is the spout without Paced"
        )
    return iter([(0.0, float(spec))])


def _sampled(function: Callable[[float], float]) -> Iterator[tuple[float, float]]:
    step = 0
    while True:
        seconds = (step + 0.5) * _GRID
        rate = function(seconds)
        if not _is_rate(rate):
            raise SourceError(
                f"the function rate= gave {rate!r} for {seconds:g} seconds; it must give tuples per second, at least 0"
            )
        yield step * _GRID, float(rate)
        step += 1


def _is_rate(number: object) -> bool:
    return isinstance(number, (int, float)) and not isinstance(number, bool) and 0 <= number < math.inf
