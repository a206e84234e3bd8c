"""The timers of keys: a name and a time for each, in event or in processing time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable

from esault.payload.timed_state import EVENT, PROCESSING, Timer
from esault.routing.ring import Name, encode, key_of

__all__ = ["KeyTimers"]

#: replaced timers that are never worth a search
FEW = 64


class KeyTimers:
    """All timers of a sub-unit, by key and name. Those of one clock are due in the order of their times, then of their setting.

    A name is that of one timer of its key: to set it again, by either clock, replaces it.
    """

    def __init__(self) -> None:
        #: what is due at once goes by key, and not by when it was set
        self.ordered = False
        #: by clock (time, rank of the key, number, key, name); those that were replaced or cancelled stay until they are half of all
        self._heaps: dict[str, list[tuple[float, bytes, int, Name, str]]] = {EVENT: [], PROCESSING: []}
        #: key -> name -> (time, clock, number)
        self._of: dict[Name, dict[str, tuple[float, str, int]]] = {}
        self._count = 0
        #: of the newest
        self._number = 0

    def __len__(self) -> int:
        return self._count

    def set(self, key: Name, name: str, at: float, by: str) -> None:
        """Set a timer, in place of the one that the key has under this name."""
        timers = self._of.get(key)
        if timers is None:
            timers = self._of[key] = {}
        self._count += name not in timers
        number = self._number = self._number + 1
        timers[name] = (at, by, number)
        heap = self._heaps[by]
        heapq.heappush(heap, (at, encode(key_of(key)) if self.ordered else b"", number, key, name))
        if len(heap) > 2 * self._count + FEW:
            heap[:] = [entry for entry in heap if self._stands(*entry[2:])]
            heapq.heapify(heap)

    def cancel(self, key: Name, name: str) -> bool:
        """Take a timer away; whether there was one."""
        timers = self._of.get(key)
        if timers is None or timers.pop(name, None) is None:
            return False
        self._count -= 1
        if not timers:
            del self._of[key]
        return True

    def _stands(self, number: int, key: Name, name: str) -> bool:
        timers = self._of.get(key)
        found = None if timers is None else timers.get(name)
        return found is not None and found[2] == number

    def first(self, by: str) -> tuple[float, int, Name, str] | None:
        """Return (time, number, key, name) of what is due first by a clock; None: there is none. It stays."""
        heap = self._heaps[by]
        while heap:
            if self._stands(*heap[0][2:]):
                at, _, number, key, name = heap[0]
                return at, number, key, name
            heapq.heappop(heap)
        return None

    def at(self, key: Name, name: str) -> float:
        """The time of a key's timer; -inf: it has none of this name."""
        found = self._of.get(key, {}).get(name)
        return -math.inf if found is None else found[0]

    def of(self, key: Name) -> tuple[Timer, ...]:
        """The timers of a key, in the order in which they were set."""
        set_in_order = sorted(self._of.get(key, {}).items(), key=lambda timer: timer[1][2])
        return tuple((name, at, by) for name, (at, by, _) in set_in_order)

    def pop(self, key: Name) -> tuple[Timer, ...]:
        """The timers of a key, which leaves."""
        found = self.of(key)
        for name, _, _ in found:
            self.cancel(key, name)
        return found

    def put(self, key: Name, timers: Iterable[Timer]) -> None:
        """Take over the timers of a key that came."""
        for name, at, by in timers:
            self.set(key, name, at, by)
