"""The keys that have something to close, and when."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Iterator

from esault.routing.ring import Name, encode, key_of

__all__ = ["Timers"]


class Timers:
    """Names by the time at which they are due. What is no longer here when its time comes is for the caller to find out."""

    def __init__(self) -> None:
        self._heap: list[float] = []
        self._names: dict[float, dict[Name, None]] = {}
        #: what is due first and when, in its order, some of it removed: a dict from whose front much was taken is searched ever longer
        self._first: tuple[float, deque[Name]] = (-math.inf, deque())
        #: what is due at once goes by key, not by when it was added
        self.ordered = False

    def __len__(self) -> int:
        return sum(map(len, self._names.values()))

    def add(self, due: float, name: Name) -> None:
        """Once for each name and time."""
        names = self._names.get(due)
        if names is None:
            self._names[due] = {name: None}
            heapq.heappush(self._heap, due)
        else:
            names[name] = None

    def next(self, until: float) -> tuple[float, Name] | None:
        """Return what is due first, if it is due by `until`; of what is due at once that which was added first. It stays."""
        while self._heap and self._heap[0] <= until:
            due = self._heap[0]
            names = self._names[due]
            if not names:
                heapq.heappop(self._heap)
                del self._names[due]
                continue
            at, order = self._first
            while at == due and order:
                if order[0] in names:
                    return due, order[0]
                order.popleft()
            self._first = due, self._in_order(names)
        return None

    def pop(self, until: float) -> tuple[float, Name] | None:
        """Take out what `next` would return."""
        return next(self.drain(until), None)

    def drain(self, until: float) -> Iterator[tuple[float, Name]]:
        """Take out one after the other what `next` would return, also of what is added meanwhile."""
        heap = self._heap
        while heap and heap[0] <= until:
            due = heap[0]
            names = self._names[due]
            at, order = self._first
            if at != due or not order:
                if not names:
                    heapq.heappop(heap)
                    del self._names[due]
                    continue
                order = self._in_order(names)
                self._first = due, order
            while order:
                name = order.popleft()
                if name in names:
                    del names[name]
                    yield due, name
                    if not heap or heap[0] != due or self._first[1] is not order:
                        break  # something is due before that, or this has been put in order anew

    def _in_order(self, names: Iterable[Name]) -> deque[Name]:
        return deque(sorted(names, key=lambda name: encode(key_of(name))) if self.ordered else names)

    def remove(self, due: float, name: Name) -> None:
        """It has been seen to."""
        names = self._names.get(due)
        if names is not None:
            names.pop(name, None)
