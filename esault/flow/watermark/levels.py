"""Up to which time windows were closed, for keys that came from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from esault.flow.watermark.clock import BEGINNING
from esault.routing.ring import position

__all__ = ["Level", "Levels"]

#: first and last place on the ring, and the time up to which the windows of keys there were closed
Level = tuple[int, int, float]


class Levels:
    """The time before which a tuple is late: the sub-unit's own watermark, or that of where its key came from.

    Two owners of a unit need not have come equally far. While a key moves, what was carried with it was on time where it came from,
    and what was late there is late here. Once the new owner has caught up, its own watermark holds for all.
    """

    def __init__(self) -> None:
        self.own = BEGINNING
        #: those that came from elsewhere, the newest first; asked for each new window, whether there are any
        self.others: list[Level] = []
        #: nothing has been restored yet
        self._begins = True

    def of(self, key: Any) -> float:
        """That of a key."""
        if self.others:
            place = position(key)
            for low, high, level in self.others:
                if low <= place <= high:
                    return level
        return self.own

    def cut(self, ranges: Iterable[tuple[int, int]]) -> list[Level]:
        """Those of these ranges, for their new owner; the first one that fits a place is that of the place."""
        found: list[Level] = []
        for low, high in ranges:
            found += [(max(low, a), min(high, b), level) for a, b, level in self.others if a <= high and b >= low]
            found.append((low, high, self.own))
        return found

    def merge(self, levels: Sequence[Level]) -> None:
        """Keys came. Those of a change in subscales come by the hundred, side by side, and most often with one time: they are kept as one."""
        for level in reversed(levels):
            self._put_first(*level)

    def _put_first(self, low: int, high: int, level: float) -> None:
        for i, (first, last, known) in enumerate(self.others):
            if known == level and (last + 1 == low or high + 1 == first):
                self.others[i] = (min(first, low), max(last, high), level)
                return
            if first <= high and last >= low:
                break  # of some of these places it says what was before
        self.others = [(low, high, level), *self.others]

    def saved(self) -> Any:
        """Return what a checkpoint keeps: a time, with the places that came from elsewhere if there are any."""
        return (self.own, tuple(self.others)) if self.others else self.own

    def restore(self, saved: Any, ranges: Sequence[tuple[int, int]] | None) -> None:
        """Take over what a sub-unit had saved, for those of its ranges that are now here; None: which they are is not known.

        Those that wrote may have come unevenly far. The own watermark begins with the slowest, each place where it was.
        """
        own, others = saved if type(saved) is tuple else (saved, ())
        was = Levels()
        was.own, was.others = own, [(low, high, level) for low, high, level in others]
        found = [] if ranges is None else was.cut(ranges)
        self.others += found
        slowest = own if ranges is None else min((level for _, _, level in found), default=None)
        if slowest is not None:
            self.own = slowest if self._begins else min(self.own, slowest)
            self._begins = False

    def catch_up(self) -> None:
        """All that was on its way is here and processed: those that are not ahead of this sub-unit's own are over."""
        self.others = [level for level in self.others if level[2] > self.own]
