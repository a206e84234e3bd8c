"""The bolt behind `stream.join(..., within=(before, after))`: pairs of tuples whose times are near each other."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from typing import Any

from esault.errors import TopologyError
from esault.topology.join import LEFT
from esault.topology.timed_bolt import NEVER, TimedBolt, behind

__all__ = ["IntervalJoin", "check_within"]

#: a tuple that is kept: (time, number, value); numbers are unique in a key, so that values are never compared
Kept = tuple[float, int, Any]


class IntervalJoin(TimedBolt):
    """Pairs each tuple of the left side with those of the right side from `before` seconds before it to `after` seconds behind it.

    With keep="all" a pair goes out when its second tuple comes. With "first" and "last" a tuple of the left side has one partner at
    most, and goes out when the watermark has passed all that might be: then it is known which one that is. What has no partner by
    then goes out with None, if the kind says so. State is freed as the watermark passes it.
    """

    # Slots, so that an object is small: there may be millions.
    __slots__ = ("after", "alone", "before", "keep", "kind", "left", "number", "right", "stays")

    def __init__(self, before: float, after: float, kind: str, keep: str) -> None:
        super().__init__()
        self.before, self.after, self.kind, self.keep = before, after, kind, keep
        #: seconds that a tuple of the right side is kept: until no left one comes, or waits, whose partner it may be
        self.stays = before if keep == "all" else before + max(after, 0)
        #: in the order of their times
        self.left: list[Kept] = []
        self.right: list[Kept] = []
        #: numbers of those that have had no partner, of sides on which that matters
        self.alone: set[int] = set()
        self.number = 0

    def take(self, stream: str, value: Any, at: float, watermark: float) -> bool:
        """Pair it with what the other side has."""
        if at < watermark:
            return False
        self.number = number = self.number + 1
        own, emit, key = (at, number, value), self.emit, self.key
        if stream == LEFT:
            if self.kind in ("left", "outer"):
                self.alone.add(number)
            if self.keep == "all":
                for _, other, right in self._partners(at):
                    emit(key, (value, right))
                    self._paired(number, other)
            insort(self.left, own)
            return True
        if self.kind in ("right", "outer"):
            self.alone.add(number)
        if self.keep == "all":
            before, after, rows = self.before, self.after, self.left
            # Sums are rounded: what is near the bounds is asked again, the way the left side asks.
            first = bisect_left(rows, (_down(at - after),))
            for left_at, other, left in rows[first : bisect_right(rows, (_up(at + before), math.inf))]:
                if left_at - before <= at <= left_at + after:
                    emit(key, (left, value))
                    self._paired(number, other)
        insort(self.right, own)
        return True

    def _partners(self, at: float) -> list[Kept]:
        rows = self.right
        return rows[bisect_left(rows, (at - self.before,)) : bisect_right(rows, (at + self.after, math.inf))]

    def _paired(self, number: int, other: int) -> None:
        if self.alone:
            self.alone.discard(number)
            self.alone.discard(other)

    @property
    def due(self) -> float:
        """Return when the first of either side can have no partner any more."""
        left, right = self.left, self.right
        if left:
            until = left[0][0] + self.after
            return behind(min(until, right[0][0] + self.stays) if right else until)
        return behind(right[0][0] + self.stays) if right else NEVER

    def advance(self, watermark: float) -> None:
        """Let go of what can have no partner any more."""
        gone = 0
        for at, number, value in self.left:
            if at + self.after >= watermark:
                break
            gone += 1
            if self.keep != "all" and (partners := self._partners(at)):
                chosen = partners[0 if self.keep == "first" else -1]
                self.emit(self.key, (value, chosen[2]))
                self.alone.discard(number)
            elif number in self.alone:
                self.alone.discard(number)
                self.emit(self.key, (value, None))
        del self.left[:gone]
        gone, stays = 0, self.stays
        for at, number, value in self.right:
            if at + stays >= watermark:
                break
            gone += 1
            if number in self.alone:
                self.alone.discard(number)
                self.emit(self.key, (None, value))
        del self.right[:gone]

    @property
    def needed(self) -> bool:
        """Return whether a tuple waits for partners."""
        return bool(self.left or self.right)

    def state(self) -> tuple[Any, ...]:
        return self.number, tuple(self.left), tuple(self.right), tuple(self.alone)

    def restore(self, *state: Any) -> None:
        self.number, left, right, alone = state
        self.left, self.right = [tuple(kept) for kept in left], [tuple(kept) for kept in right]
        self.alone = set(alone)


def _down(time: float) -> float:
    return time - abs(time) * 1e-15


def _up(time: float) -> float:
    return time + abs(time) * 1e-15


def check_within(where: str, within: object) -> tuple[float, float]:
    """Return the seconds before and after. Raises TopologyError."""
    remedy = "write within=(before, after), two numbers of seconds: how long before and after a tuple of this stream one of the other may be"
    if not isinstance(within, (tuple, list)) or len(within) != 2:
        raise TopologyError(f"{where}: within={within!r}; {remedy}")
    for seconds in within:
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or math.isnan(seconds):
            raise TopologyError(f"{where}: within={within!r} has {seconds!r} ({type(seconds).__name__}); {remedy}")
        if math.isinf(seconds):
            raise TopologyError(
                f"{where}: within={within!r} has no end, so that all tuples of a side would be kept for ever; give a number of seconds, "
                "or keep the newest of each key alone with join_table(...)"
            )
    before, after = within
    if before < 0:
        raise TopologyError(
            f"{where}: within={within!r}: before is a length, and is not negative: what Flink calls between({before!r}, {after!r}) is "
            f"within=({-before!r}, {after!r}). For partners that are all later, from 5 to 10 s after, join from the other side: "
            "other.join(name, this, within=(10, -5))"
        )
    if before + after < 0:
        raise TopologyError(
            f"{where}: within={within!r} contains no time: it ends {-after!r} s before a tuple and begins {before!r} s before it; make "
            "after at least -before"
        )
    return before, after
