"""Random numbers of arrivals."""

from __future__ import annotations

import math
import random

__all__ = ["arrivals"]

#: mean from which a normal number is as good
MANY = 40.0


def arrivals(order: random.Random, mean: float, burst: float) -> float:
    """Return the number of arrivals where `mean` are expected, in bursts of so many at random times; exactly `mean` where burst is 0."""
    if burst <= 0 or mean <= 0:
        return max(0.0, mean)
    expected = mean / burst
    if expected > MANY:
        return max(0.0, order.gauss(expected, math.sqrt(expected))) * burst
    limit, count, product = math.exp(-expected), 0, order.random()
    while product > limit:
        count += 1
        product *= order.random()
    return count * burst
