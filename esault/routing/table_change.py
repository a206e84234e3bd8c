"""Changes of an output table: split, merge, move, rescale (Zhan et al. 2017, growth and shrinkage). Each returns a new table.

`dealt` says who gives what where keys have no owners.
"""

from __future__ import annotations

from collections.abc import Sequence

from esault.routing.ring import RING
from esault.routing.table import Move, OutputTable

__all__ = ["dealt", "merged", "moved", "rescaled", "split", "subscales"]


def split(table: OutputTable, owner: int, new: int, at: int | None = None) -> OutputTable:
    """The owner's largest interval, in two; the upper part goes to `new` (Zhan et al. 2017, Fig. 4)."""
    after = table.copy()
    low, _ = max(table.ranges(owner), key=lambda r: r[1] - r[0])
    after.split(low, new, at)
    return after


def merged(table: OutputTable, owner: int) -> OutputTable:
    """The owner's intervals join their neighbours (Zhan et al. 2017, shrinkage). Raises ValueError for the only owner."""
    after = table.copy()
    if len(table.owners()) == 1:
        raise ValueError("the only sub-unit cannot be merged away")
    while ranges := after.ranges(owner):
        low = ranges[0][0]
        if after.merge_left(low) is None:
            after.merge_right(low)
    return after


def moved(table: OutputTable, owner: int, new: int) -> OutputTable:
    """The same ranges, another owner."""
    after = table.copy()
    after.replace(owner, new)
    return after


def rescaled(table: OutputTable, owners: Sequence[int]) -> OutputTable:
    """Equal shares for these owners, in this order on the ring."""
    after = OutputTable.even(owners)
    after.version = table.version
    return after


def subscales(moves: Sequence[Move], many: int) -> list[list[Move]]:
    """Return the same moves in so many subscales, one behind the other: the n-th has the n-th part of each move.

    The term is that of DRRS: Gu et al., "Towards Fine-Grained Scalability for Stateful Stream Processing Systems", ICDE 2025.
    """
    found: list[list[Move]] = [[] for _ in range(max(1, many))]
    for move in moves:
        places = move.high - move.low + 1
        parts = min(len(found), places)
        bounds = [move.low + places * part // parts for part in range(parts + 1)]
        for into, low, above in zip(found, bounds, bounds[1:]):
            into.append(move._replace(low=low, high=above - 1))
    return [each for each in found if each]


def dealt(olds: Sequence[int], news: Sequence[int]) -> list[Move]:
    """Return what each old owner gives to new ones of the rows that wait with it: all have the same then, if the old ones had.

    The ranges are of the rows of one old owner, all of which stand on a ring of their own. There are fewer moves than owners.
    """
    moves: list[Move] = []
    width = len(olds) + len(news)
    bounds = [part * RING // width for part in range(width + 1)]
    open_news = iter(news)
    new, lacks = next(open_news, 0), len(olds)
    for old in olds:
        part = len(olds)  # what it keeps
        while part < width:
            many = min(lacks, width - part)
            moves.append(Move(bounds[part], bounds[part + many] - 1, old, new))
            part, lacks = part + many, lacks - many
            if not lacks:
                new, lacks = next(open_news, 0), len(olds)
    return moves
