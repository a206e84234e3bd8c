"""AUTOSCALE's forecast of load and capacity: formulas (1) to (6) of the paper that `autoscale` names. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["activity_level", "capacity", "correction", "forecast", "ols"]


def ols(instants: Sequence[float], counts: Sequence[float]) -> tuple[float, float]:
    """Slope and intercept of the least-squares line, counts a second and counts; slope 0 if all instants are one."""
    n = len(instants)
    mean_t, mean_y = sum(instants) / n, sum(counts) / n
    spread = sum((t - mean_t) ** 2 for t in instants)
    if spread == 0:
        return 0.0, mean_y
    slope = sum((t - mean_t) * (y - mean_y) for t, y in zip(instants, counts)) / spread
    return slope, mean_y - slope * mean_t


def forecast(instants: Sequence[float], counts: Sequence[float], shift: float) -> tuple[float, float]:
    """Tuples expected in the next iteration, and the slope: formula (2).

    `instants`: seconds at which the sub-intervals of the closed iteration ended; `counts`: arrivals in each; `shift`: how
    many seconds later the line is read. The paper prints 0, which gives back what has arrived: a line with an intercept
    goes through the mean. The length of an iteration is what the prose means (reading R1). No sub-interval counts below 0.
    """
    slope, intercept = ols(instants, counts)
    return sum(max(0.0, slope * (t + shift) + intercept) for t in instants), slope


def capacity(latency: float, degree: int, seconds: float) -> float:
    """Tuples that `degree` tasks process in so many seconds; `latency`: seconds a tuple without waiting. Formula (4)."""
    return degree * seconds / latency


def activity_level(arrivals: float, waiting: float, capable: float) -> float:
    """Expected load over expected capacity, both in tuples: formulas (3) and (6)."""
    return math.inf if capable <= 0 else (arrivals + waiting) / capable


def correction(capacities: Sequence[float], degree: int) -> float:
    """Return what formula (5) adds to the capacity, from the capacities of one task in the last iterations, oldest first.

    The paper's term is defined by itself and has the unit of a square. This is reading R3: the last difference, times the
    lag-1 correlation of the differences, times the degree; 0 where there are too few to correlate.
    """
    differences = [b - a for a, b in pairwise(capacities)]
    if len(differences) < 3:
        return 0.0
    before, after = differences[:-1], differences[1:]
    mean_a, mean_b = sum(before) / len(before), sum(after) / len(after)
    var_a = sum((a - mean_a) ** 2 for a in before)
    var_b = sum((b - mean_b) ** 2 for b in after)
    if var_a * var_b <= 0:
        return 0.0
    both = sum((a - mean_a) * (b - mean_b) for a, b in zip(before, after))
    return degree * max(-1.0, min(1.0, both / math.sqrt(var_a * var_b))) * differences[-1]
