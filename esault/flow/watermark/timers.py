"""The keys that have something to close, and when."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator

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
        #: with `ordered`, what is due first and when, as a heap by key: what is added to it meanwhile has its place
        self._by_key: tuple[float, list[tuple[bytes, Name]]] = (-math.inf, [])

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
        if self.ordered and due == self._by_key[0]:
            heapq.heappush(self._by_key[1], (encode(key_of(name)), name))

    def next(self, until: float) -> tuple[float, Name] | None:
        """Return what is due first, if it is due by `until`; of what is due at once that which was added first. It stays."""
        while self._heap and self._heap[0] <= until:
            due = self._heap[0]
            names = self._names[due]
            if not names:
                heapq.heappop(self._heap)
                del self._names[due]
                continue
            if self.ordered:
                return due, self._least(due, names)
            at, order = self._first
            while at == due and order:
                if order[0] in names:
                    return due, order[0]
                order.popleft()
            self._first = due, deque(names)
        return None

    def _least(self, due: float, names: dict[Name, None]) -> Name:
        """Return the name of those with the least key."""
        at, heap = self._by_key
        if at != due:
            heap = sorted((encode(key_of(name)), name) for name in names)  # which is a heap
            self._by_key = due, heap
        while heap[0][1] not in names:
            heapq.heappop(heap)
        return heap[0][1]

    def pop(self, until: float) -> tuple[float, Name] | None:
        """Take out what `next` would return."""
        return next(self.drain(until), None)

    def drain(self, until: float) -> Iterator[tuple[float, Name]]:
        """Take out one after the other what `next` would return, also of what is added meanwhile."""
        heap = self._heap
        while heap and heap[0] <= until:
            due = heap[0]
            names = self._names[due]
            at, order = (due, None) if self.ordered else self._first
            if not names and not (at == due and order):
                heapq.heappop(heap)
                del self._names[due]
                continue
            if order is None:
                name = self._least(due, names)
                del names[name]
                yield due, name
                continue
            if at != due or not order:
                order = deque(names)
                self._first = due, order
            while order:
                name = order.popleft()
                if name in names:
                    del names[name]
                    yield due, name
                    if not heap or heap[0] != due or self._first[1] is not order:
                        break  # something is due before that, or this has been put in order anew

    def remove(self, due: float, name: Name) -> None:
        """It has been seen to."""
        names = self._names.get(due)
        if names is not None:
            names.pop(name, None)
