"""The rate of a run after its warm-up, for engines that compile while they run or put results out seldom."""

from __future__ import annotations

from typing import Any

__all__ = ["WARM_UP", "steady"]

#: the part of a load that a JVM may warm up with before its rate counts
WARM_UP = 0.4


def steady(tuples: int, begun: float, ended: float) -> dict[str, Any]:
    """As it stands in what a flow prints: `tuples` that came in between `begun` and `ended`, seconds. Raises ValueError."""
    if tuples < 1 or ended <= begun:
        raise ValueError(
            f"{tuples} tuples between {begun} and {ended}: nothing is left to measure after the warm-up; take a larger load"
        )
    return {"tuples": tuples, "seconds": ended - begun}
