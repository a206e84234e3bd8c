"""Which keys have something to close, and when."""

from __future__ import annotations

import heapq
from typing import Any

__all__ = ["Timers"]


class Timers:
    """Names by the time at which they are due. What is no longer here when its time comes is for the caller to find out."""

    def __init__(self) -> None:
        self._heap: list[float] = []
        self._names: dict[float, dict[Any, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._names.values()))

    def add(self, due: float, name: Any) -> None:
        """Once for each name and time."""
        names = self._names.get(due)
        if names is None:
            self._names[due] = {name: None}
            heapq.heappush(self._heap, due)
        else:
            names[name] = None

    def next(self, until: float) -> tuple[float, Any] | None:
        """What is due first, if it is due by `until`; of what is due at once that which was added first. It stays."""
        while self._heap and self._heap[0] <= until:
            due = self._heap[0]
            names = self._names[due]
            if names:
                return due, next(iter(names))
            heapq.heappop(self._heap)
            del self._names[due]
        return None

    def remove(self, due: float, name: Any) -> None:
        """It has been seen to."""
        names = self._names.get(due)
        if names is not None:
            names.pop(name, None)
