"""The growth of a sub-unit's latency of late, and the sub-unit where it is worst.

Formulas 3.1 and 3.2 of Sousa's dissertation (2014). Latencies are in any one unit, oldest first; the result has none.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

__all__ = ["degradation", "growths", "ranked", "reported"]

R = TypeVar("R", bound=Hashable)


def reported(latencies: Sequence[float]) -> float:
    """Return the mean of the latencies since the last control message (3.1). Raises ValueError for none."""
    if not latencies:
        raise ValueError("there is no mean of no latencies: send no report where nothing was processed")
    return sum(latencies) / len(latencies)


def growths(latencies: Sequence[float], d: float) -> list[float]:
    """Return the growth from each report to the next, 0 unless by more than the share `d`."""
    return [b - a if b > a + d * a else 0.0 for a, b in pairwise(latencies)]


def degradation(latencies: Sequence[float], d: float) -> float:
    """All growth that counts over the first report (3.2); 0 for fewer than two reports or a first one of 0.

    The sum printed begins at the first report, which grew from nothing; the worked example begins at the second.
    """
    if len(latencies) < 2 or latencies[0] <= 0:
        return 0.0
    return sum(growths(latencies, d)) / latencies[0]


def ranked(histories: Mapping[R, Sequence[float]], moved_at: Mapping[R, float], d: float) -> list[R]:
    """Those that got worse, worst first; of equals the one that was moved longest ago, never before all others."""
    worse = {replica: degradation(latencies, d) for replica, latencies in histories.items()}
    return sorted(
        (replica for replica, s in worse.items() if s > 0),
        key=lambda replica: (-worse[replica], moved_at.get(replica, float("-inf")), str(replica)),
    )
