"""Shapes of loads: what a rate over time can look like, and what can be done with any of them.

A load has `rate(t)`, tuples a second at `t` seconds, its natural length `seconds`, after which it repeats, and `peak`,
its highest rate. Loads are values: frozen, and those that draw do so from their seed alone, the same in each
repetition.

It is one module of over 300 lines: shapes are small, and are made of one another.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

__all__ = ["Day", "Drawn", "Lines", "Load", "Noisy", "Part", "Ramp", "Scaled", "Sine", "Steps", "Telegraph", "Week"]


class Load(Protocol):
    """The load that a source offers."""

    @property
    def seconds(self) -> float:
        """Length of one cycle."""
        ...

    @property
    def peak(self) -> float:
        """Highest rate of a cycle, tuples a second."""
        ...

    def rate(self, t: float) -> float:
        """Tuples a second at `t` seconds from the start, 0 or more."""
        ...


@dataclass(frozen=True)
class Steps:
    """Constant from each time of `times` on, which begin with 0 and rise."""

    times: tuple[float, ...]
    rates: tuple[float, ...]
    seconds: float

    def rate(self, t: float) -> float:
        """Tuples a second."""
        return self.rates[bisect_right(self.times, t % self.seconds) - 1]

    @property
    def peak(self) -> float:
        """Highest rate."""
        return max(self.rates)


@dataclass(frozen=True)
class Lines:
    """Straight lines between points; after the last point its rate holds until `seconds`."""

    times: tuple[float, ...]
    rates: tuple[float, ...]
    seconds: float

    def rate(self, t: float) -> float:
        """Tuples a second."""
        t %= self.seconds
        i = bisect_right(self.times, t) - 1
        if i + 1 >= len(self.times):
            return self.rates[i]
        share = (t - self.times[i]) / (self.times[i + 1] - self.times[i])
        return self.rates[i] + share * (self.rates[i + 1] - self.rates[i])

    @property
    def peak(self) -> float:
        """Highest rate."""
        return max(self.rates)


@dataclass(frozen=True)
class Sine:
    """mean + amplitude * sin(2 pi t / period)."""

    mean: float = 5000.0
    amplitude: float = 2500.0
    period: float = 500.0

    def rate(self, t: float) -> float:
        """Tuples a second."""
        return max(0.0, self.mean + self.amplitude * math.sin(2 * math.pi * t / self.period))

    @property
    def seconds(self) -> float:
        """One period."""
        return self.period

    @property
    def peak(self) -> float:
        """Highest rate."""
        return self.mean + abs(self.amplitude)


@dataclass(frozen=True)
class Ramp:
    """The load of AUTOSCALE's experiments (Kotto-Kombi et al. 2017): low, exponential growth, a plateau, down in steps, low."""

    low: float = 4.0
    high: float = 140.0
    falls: tuple[float, ...] = (100.0, 60.0, 30.0)
    quiet: float = 300.0
    growth: float = 300.0
    plateau: float = 900.0
    step: float = 120.0
    after: float = 360.0

    def rate(self, t: float) -> float:
        """Tuples a second."""
        t = t % self.seconds - self.quiet
        if t < 0:
            return self.low
        if t < self.growth:
            return self.low * math.pow(self.high / self.low, t / self.growth)
        t -= self.growth + self.plateau
        if t < 0:
            return self.high
        fall = int(t // self.step)
        return self.falls[fall] if fall < len(self.falls) else self.low

    @property
    def seconds(self) -> float:
        """From the first quiet phase to the end of the last."""
        return self.quiet + self.growth + self.plateau + len(self.falls) * self.step + self.after

    @property
    def peak(self) -> float:
        """The plateau."""
        return self.high


@dataclass(frozen=True)
class Drawn:
    """Every `every` seconds another rate, uniform between `low` and `high` (random: Li et al. 2017)."""

    low: float = 1000.0
    high: float = 50_000.0
    every: float = 5.0
    count: int = 120
    seed: int = 1

    def rate(self, t: float) -> float:
        """Tuples a second."""
        return _drawn(self.seed, self.count, self.low, self.high)[int(t // self.every) % self.count]

    @property
    def seconds(self) -> float:
        """All draws once."""
        return self.every * self.count

    @property
    def peak(self) -> float:
        """Highest of the draws."""
        return max(_drawn(self.seed, self.count, self.low, self.high))


@dataclass(frozen=True)
class Day:
    """A day: lowest before dawn, a rise in the morning, a shoulder at noon, highest in the evening. Made up, fitted to no data."""

    low: float = 100.0
    high: float = 1000.0
    seconds: float = 86_400.0

    def rate(self, t: float) -> float:
        """Tuples a second; 0 is midnight."""
        low, high = _day_range()
        share = (_day(24.0 * t / self.seconds) - low) / (high - low)
        return self.low + (self.high - self.low) * min(max(share, 0.0), 1.0)

    @property
    def peak(self) -> float:
        """In the evening."""
        return self.high


@dataclass(frozen=True)
class Week:
    """Seven days as `Day`, the last two of which have `week_end` times as much. Made up, fitted to no data."""

    low: float = 100.0
    high: float = 1000.0
    week_end: float = 0.4
    seconds: float = 7 * 86_400.0

    def rate(self, t: float) -> float:
        """Tuples a second; 0 is midnight before Monday."""
        share = self.week_end if t % self.seconds >= self.seconds * 5 / 7 else 1.0
        return share * Day(self.low, self.high, self.seconds / 7).rate(t)

    @property
    def peak(self) -> float:
        """In the evenings of work days."""
        return self.high


@dataclass(frozen=True)
class Telegraph:
    """High and low in turn, for times drawn from a Pareto law: most are short, and some are very long.

    Sums of such sources are self-similar (Willinger, Taqqu, Sherman, Wilson: Self-similarity through high-variability, 1997).
    """

    low: float = 100.0
    high: float = 1000.0
    #: the shortest time, and the tail index: the smaller, the longer the longest; 1 < alpha < 2 has a mean and no variance
    least: float = 4.0
    alpha: float = 1.4
    seconds: float = 600.0
    seed: int = 1

    def rate(self, t: float) -> float:
        """Tuples a second."""
        turns = _turns(self.seed, self.least, self.alpha, self.seconds)
        return self.low if bisect_right(turns, t % self.seconds) % 2 else self.high

    @property
    def peak(self) -> float:
        """While it is high."""
        return self.high


@dataclass(frozen=True)
class Noisy:
    """Another load, multiplied by a factor uniform in 1 - spread .. 1 + spread, a new one every `every` seconds."""

    load: Load
    spread: float = 0.2
    every: float = 1.0
    seed: int = 1

    def rate(self, t: float) -> float:
        """Tuples a second."""
        factors = _drawn(self.seed, self._count, 1.0 - self.spread, 1.0 + self.spread)
        return max(0.0, self.load.rate(t)) * factors[int(t // self.every) % self._count]

    @property
    def _count(self) -> int:
        return max(1, math.ceil(self.load.seconds / self.every))

    @property
    def seconds(self) -> float:
        """Of the load."""
        return self.load.seconds

    @property
    def peak(self) -> float:
        """Return a rate that the load never exceeds."""
        return self.load.peak * (1.0 + self.spread)


@dataclass(frozen=True)
class Scaled:
    """Another load, `times` as high and `stretch` times as long."""

    load: Load
    times: float = 1.0
    stretch: float = 1.0

    def rate(self, t: float) -> float:
        """Tuples a second."""
        return self.times * self.load.rate(t / self.stretch)

    @property
    def seconds(self) -> float:
        """Stretched."""
        return self.load.seconds * self.stretch

    @property
    def peak(self) -> float:
        """Scaled."""
        return self.load.peak * self.times


@dataclass(frozen=True)
class Part:
    """`seconds` of another load from `start` on, such as one day of many."""

    load: Load
    start: float
    seconds: float

    def rate(self, t: float) -> float:
        """Tuples a second."""
        return self.load.rate(self.start + t % self.seconds)

    @property
    def peak(self) -> float:
        """Highest rate of the part: exact for lines and steps, of others at 10 000 places."""
        if not isinstance(self.load, (Lines, Steps)):
            return max(self.rate(self.seconds * i / 10_000) for i in range(10_000))
        load = self.load
        inside = [r for t, r in zip(load.times, load.rates) if (t - self.start) % load.seconds < self.seconds]
        # Lines are highest at points or at the ends; just before its end, since there the part begins anew.
        return max([load.rate(self.start), load.rate(self.start + self.seconds * (1 - 1e-12)), *inside])


@lru_cache(maxsize=64)
def _drawn(seed: int, count: int, low: float, high: float) -> tuple[float, ...]:
    order = random.Random(seed)
    return tuple(order.uniform(low, high) for _ in range(count))


@lru_cache(maxsize=64)
def _turns(seed: int, least: float, alpha: float, seconds: float) -> tuple[float, ...]:
    """Times at which it turns, from 0, where it turns low, to the end."""
    order, turns = random.Random(seed), [0.0]
    while turns[-1] < seconds:
        turns.append(turns[-1] + least * order.paretovariate(alpha))
    return tuple(turns)


def _day(hour: float) -> float:
    turn = 2 * math.pi * hour / 24
    return -0.5 * math.cos(turn - math.pi / 3) + 0.2 * math.cos(2 * turn - 4 * math.pi / 3)


@lru_cache(maxsize=1)
def _day_range() -> tuple[float, float]:
    values = [_day(minute / 60) for minute in range(1440)]
    return min(values), max(values)
