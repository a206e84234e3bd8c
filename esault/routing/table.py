"""The output table: which sub-unit owns which part of the ring. Layer one of routing, in every upstream sub-unit.

The paper's interval tree: a node `(start, owner)` covers `[start, next start)`, the last one up to INT_MAX; look-up, a
split of any interval and a merge of any two neighbours cost O(log n). A sorted dict of starts has the same results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from sortedcontainers import SortedDict

from esault.routing.ring import INT_MAX, RING

__all__ = ["Move", "OutputTable"]

#: starts and owners, as they travel in messages and snapshots
Pairs = tuple[tuple[int, int], ...]


class Move(NamedTuple):
    """A range of the ring, both ends included, that goes from one owner to another."""

    low: int
    high: int
    old: int
    new: int


class OutputTable:
    """Interval starts -> owners (incarnations), and a version that every change raises by one.

    A change is made in place; to prepare several as one version, change a `copy` and set its `version`. The intervals
    tile [0, INT_MAX]: every place has exactly one owner, and an owner may have several intervals.
    """

    __slots__ = ("_owners", "version")

    def __init__(self, pairs: Iterable[tuple[int, int]], version: int = 1) -> None:
        """Of `(start, owner)` pairs in any order. Raises ValueError unless they tile the ring."""
        pairs = list(pairs)
        self._owners: Any = SortedDict(pairs)
        #: grows by one with every change
        self.version = version
        if len(self._owners) != len(pairs):
            raise ValueError("two intervals of an output table start at one place")
        try:
            self.check()
        except AssertionError as error:
            raise ValueError(str(error)) from None

    @classmethod
    def single(cls, owner: int) -> OutputTable:
        """One owner of the whole ring."""
        return cls([(0, owner)])

    @classmethod
    def halved(cls, owners: Sequence[int]) -> OutputTable:
        """The paper's first table (public code): intervals are halved in FIFO order, owners given out in that order.

        Unless their number is a power of two, the cells are unequal: with 6 owners two have a quarter each.
        """
        starts = [0]
        table = cls.single(0)
        while len(starts) < len(owners):
            start = starts.pop(0)
            starts += [start, table.split(start, 0)]
        return cls(zip(starts, _some(owners)))

    @classmethod
    def even(cls, owners: Sequence[int]) -> OutputTable:
        """Equal cells (they differ by one place at most), one for each owner, in ring order."""
        n = len(_some(owners))
        return cls((i * RING // n, owner) for i, owner in enumerate(owners))

    @classmethod
    def from_snapshot(cls, snapshot: tuple[int, Pairs]) -> OutputTable:
        """Of what `snapshot` gave. Raises ValueError unless it is that of a table."""
        try:
            version, pairs = snapshot
            return cls([(start, owner) for start, owner in pairs], version)
        except TypeError as error:
            raise ValueError(f"no snapshot of an output table: {error}") from None

    def snapshot(self) -> tuple[int, Pairs]:
        """Version and `(start, owner)` pairs in ring order: a plain value that can travel and never changes."""
        return self.version, tuple(self._owners.items())

    def copy(self) -> OutputTable:
        """An equal table whose changes do not touch this one."""
        return OutputTable(self._owners.items(), self.version)

    def owner(self, position: int) -> int:
        """The owner of this place: that of the greatest start <= position. O(log n)."""
        if not 0 <= position <= INT_MAX:
            raise ValueError(f"{position} is no place on the ring: places are 0..{INT_MAX}")
        owners = self._owners
        owner: int = owners.peekitem(owners.bisect_right(position) - 1)[1]
        return owner

    def upper(self, start: int) -> int:
        """The last place of the interval that starts here."""
        index = self._index(start)
        starts = self._owners.keys()
        upper: int = starts[index + 1] - 1 if index + 1 < len(starts) else INT_MAX
        return upper

    def intervals(self) -> list[tuple[int, int, int]]:
        """`(start, last place, owner)` of every interval, in ring order."""
        starts = list(self._owners)
        return [(start, after - 1, owner) for (start, owner), after in zip(self._owners.items(), [*starts[1:], RING])]

    def ranges(self, owner: int) -> list[tuple[int, int]]:
        """`(first, last place)` of each interval of this owner, in ring order; [] if it has none."""
        return [(low, high) for low, high, who in self.intervals() if who == owner]

    def owners(self) -> list[int]:
        """Every owner once, in the ring order of its first interval."""
        return list(dict.fromkeys(self._owners.values()))

    def split(self, start: int, new_owner: int, at: int | None = None) -> int:
        """Give the upper part of an interval, from `at` on (the middle by default), to `new_owner`; returns `at`.

        Raises ValueError when no interval starts at `start`, it is one place only, or `at` is not inside it.
        """
        upper = self.upper(start)
        if upper == start:
            raise ValueError(f"the interval at {start} is a single place and cannot be split")
        if at is None:
            at = start // 2 + upper // 2 + 1
        if not start < at <= upper:
            raise ValueError(f"the interval {start}..{upper} cannot be split at {at}: choose {start + 1}..{upper}")
        self._owners[at] = new_owner
        self.version += 1
        return at

    def merge_left(self, start: int) -> int | None:
        """Let the left neighbour take this interval; returns where it starts, or None at the ring's lower end."""
        index = self._index(start)
        if index == 0:
            return None
        left: int = self._owners.keys()[index - 1]
        del self._owners[start]
        self.version += 1
        return left

    def merge_right(self, start: int) -> int | None:
        """Let the right neighbour take this interval; returns its new start, or None at the ring's upper end."""
        index = self._index(start)
        if index + 1 == len(self._owners):
            return None
        self._owners[start] = self._owners.pop(self._owners.keys()[index + 1])
        self.version += 1
        return start

    def move(self, start: int, new_owner: int) -> None:
        """Give the interval that starts here to another owner."""
        self._index(start)
        self._owners[start] = new_owner
        self.version += 1

    def assign(self, low: int, high: int, owner: int) -> None:
        """Give a range, both ends included, to this owner; intervals are cut at its ends, and stay cut, as neighbours of one owner may."""
        if not 0 <= low <= high <= INT_MAX:
            raise ValueError(f"{low}..{high} is no range of the ring")
        for start in (low, high + 1):
            if start <= INT_MAX and start not in self._owners:
                self._owners[start] = self.owner(start)
        for start in list(self._owners.irange(low, high)):
            self._owners[start] = owner
        self.version += 1

    def join_cuts(self, kept: Collection[int]) -> None:
        """Join neighbours of one owner, but where an interval starts that is to be kept. No place changes its owner, nor is it a new version."""
        last = None
        for start, owner in list(self._owners.items()):
            if owner == last and start not in kept:
                del self._owners[start]
            last = owner

    def replace(self, old_owner: int, new_owner: int) -> int:
        """Give all intervals of one owner to another, as one change. Returns how many; 0 leaves the version alone."""
        starts = [start for start, owner in self._owners.items() if owner == old_owner]
        for start in starts:
            self._owners[start] = new_owner
        self.version += bool(starts)
        return len(starts)

    def moves_to(self, after: OutputTable) -> list[Move]:
        """Return the ranges that change owner from this table to `after`, in ring order; neighbours of the same owners are one move."""
        moves: list[Move] = []
        bounds = sorted({*self._owners, *after._owners})
        for low, above in zip(bounds, [*bounds[1:], RING]):
            old, new = self.owner(low), after.owner(low)
            if old == new:
                continue
            joins = moves and moves[-1].high == low - 1 and moves[-1][2:] == (old, new)
            moves.append(Move(moves.pop().low if joins else low, above - 1, old, new))
        return moves

    def check(self) -> None:
        """Raise AssertionError unless the intervals tile [0, INT_MAX]."""
        owners = self._owners
        if not all(type(x) is int for pair in owners.items() for x in pair) or type(self.version) is not int:
            raise AssertionError("starts, owners and version of an output table are integers")
        if not owners or owners.keys()[0] != 0:
            raise AssertionError("the first interval of an output table starts at 0")
        if owners.keys()[-1] > INT_MAX:
            raise AssertionError(f"the last interval of an output table starts beyond {INT_MAX}")

    def _index(self, start: int) -> int:
        if start not in self._owners:
            raise ValueError(f"no interval of this table starts at {start}")
        index: int = self._owners.index(start)
        return index

    def __len__(self) -> int:
        """Number of intervals."""
        return len(self._owners)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTable) and self.snapshot() == other.snapshot()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"<OutputTable version {self.version}: {len(self)} intervals of {len(self.owners())} owners>"


def _some(owners: Sequence[int]) -> Sequence[int]:
    if not owners:
        raise ValueError("an output table needs at least one owner")
    return owners
