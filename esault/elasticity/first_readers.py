"""The number of readers that a source begins with where all of its work runs in them: then they are what limits, before anything is measured.

They share nothing and pass nothing on, so that several take no more processor time than one. On a machine that has other work, too,
the system gives each process its part: two of them get more done there as well.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

__all__ = ["first_readers"]

#: bytes for which a reader is worth its process: at the least work for the shortest lines some tenths of a second
WORTH = 2 << 20
#: share of the time of one reader that several must save
GAIN = 0.2
#: times the least that fewer readers may take
NEAR = 1.1


def first_readers(sizes: Iterable[int], cores: int) -> int:
    """Return how many readers to begin with, for pieces of so many bytes and so many processors."""
    pieces = sorted(sizes, reverse=True)
    most = min(cores, len(pieces), sum(pieces) // WORTH)
    if most < 2:
        return 1
    longest = {n: _longest(pieces, n) for n in range(1, most + 1)}
    least = min(longest.values())
    if least > (1 - GAIN) * longest[1]:
        return 1
    return next(n for n in longest if longest[n] <= NEAR * least)


def _longest(pieces: list[int], readers: int) -> int:
    """Return the bytes of the reader that has most: the largest pieces first, each to who has the least so far."""
    loads = [0] * readers
    for size in pieces:
        heapq.heapreplace(loads, loads[0] + size)
    return max(loads)
