"""The share of a unit's tuples for each of its sub-units' ranges: what their rates of one short window do not tell.

In a quarter of a second one of four sub-units that get 2 000 tuples/s in bursts was seen to have a quarter less than its part, by chance and because its window
is not quite that of the others; ranges that were shared by that left it, as one of five, with 27 % of the load. So tuples are counted over the
same seconds for all sub-units, as long as their ranges have been what they are.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["LONGEST", "PRIOR", "SHORTEST", "load_shares"]

#: seconds that are counted at most, so that a load which moves on the ring is followed, and at least
LONGEST, SHORTEST = 10.0, 0.2
#: tuples that count as having come evenly over the ring: few say less than the hash, which spreads keys evenly
PRIOR = 64.0


def load_shares(counts: Mapping[int, float], widths: Mapping[int, float]) -> dict[int, float]:
    """Owner -> its share, 0 .. 1, of what comes to all; together 1.

    `counts`: tuples that came to each in the same seconds; `widths`: how much of the ring it owns, in any measure, which is what the hash
    promises it.
    """
    ring = sum(widths.values())
    total = sum(counts.values()) + PRIOR
    if ring <= 0:
        return {}
    return {owner: (counts.get(owner, 0.0) + PRIOR * width / ring) / total for owner, width in widths.items()}
