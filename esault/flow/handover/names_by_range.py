"""The names of the elements that subscales to come will move, found while the first one goes.

A change in subscales hands ranges over one after the other. To look at all names for each of them would take longer than
to move their state. So the old owner looks once, and keeps the names by range; those that are made meanwhile come to it
in a list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from esault.flow.handover.divide import MovedKeys
from esault.messages.change import Ranges
from esault.routing.ring import Name, key_of, position

__all__ = ["NamesByRange"]


class NamesByRange:
    """Names by range of the ring. Each range is taken out once."""

    def __init__(self, later: Ranges) -> None:
        """`later`: the ranges to come, and whom they go to."""
        self._ranges = sorted((low, high) for low, high, _ in later)
        self._lows = [low for low, _ in self._ranges]
        self._names: dict[tuple[int, int], list[Name]] = {each: [] for each in self._ranges}
        #: names of elements that were made or restored since the look at all began
        self.made: list[Name] = []

    def __len__(self) -> int:
        """Ranges that were not taken out."""
        return len(self._names)

    def note(self, place: int, name: Name) -> None:
        """Keep a name whose key stands at this place, if its range is one of those to come."""
        at = bisect_right(self._lows, place) - 1
        if at >= 0 and place <= self._ranges[at][1]:
            names = self._names.get(self._ranges[at])
            if names is not None:
                names.append(name)

    def look(self, names: Iterator[Name], moved: MovedKeys) -> Iterator[tuple[int, Name]]:
        """Return (new owner, name) of all of these, 0 where one stays, bit by bit; keep those of the ranges to come."""
        for name in names:
            place = position(key_of(name))
            yield moved.owner_at(place), name
            self.note(place, name)
        # What was taken from a disk before the look had come to it is not found there.
        yield from self._of_made(moved)

    def knows(self, ranges: Sequence[tuple[int, int]]) -> bool:
        """Return whether all of these were to come, and were not taken out."""
        return all(each in self._names for each in ranges)

    def take(self, ranges: Sequence[tuple[int, int]], moved: MovedKeys) -> Iterator[tuple[int, Name]]:
        """Return (new owner, name) of these ranges, bit by bit; some of the elements may have gone."""
        found = [(low, self._names.pop((low, high))) for low, high in ranges]
        return self._each(found, moved)

    def _each(self, found: list[tuple[int, list[Name]]], moved: MovedKeys) -> Iterator[tuple[int, Name]]:
        for low, names in found:
            while names:
                yield moved.owner_at(low), names.pop()
        yield from self._of_made(moved)

    def _of_made(self, moved: MovedKeys) -> Iterator[tuple[int, Name]]:
        while self.made:
            name = self.made.pop()
            place = position(key_of(name))
            self.note(place, name)
            yield moved.owner_at(place), name
