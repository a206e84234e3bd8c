"""Virtual time: what is to happen, in order. Nothing else in a simulation knows of time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any
from zlib import crc32

__all__ = ["EPOCH", "Events"]

#: seconds since the epoch at which every simulation begins
EPOCH = 1_700_000_000.0


class Events:
    """The clock of a simulation, and all that is due. Of two things due at one time the one that was asked for first comes first."""

    def __init__(self) -> None:
        #: seconds since the simulation began
        self.now = 0.0
        #: how many have happened
        self.count = 0
        #: a checksum of all that has happened, and when
        self.trace = 0
        self._due: list[tuple[float, int, str, Callable[..., None], tuple[Any, ...]]] = []
        self._asked = 0

    def at(self, when: float, what: str, call: Callable[..., None], *arguments: Any) -> None:
        """Have it happen then, or at once where that has passed; `what` names it in the trace."""
        self._asked += 1
        heapq.heappush(self._due, (max(when, self.now), self._asked, what, call, arguments))

    def after(self, seconds: float, what: str, call: Callable[..., None], *arguments: Any) -> None:
        """Have it happen so much later."""
        self.at(self.now + seconds, what, call, *arguments)

    def step(self) -> bool:
        """Have the next one happen; whether there was one."""
        if not self._due:
            return False
        self.now, _, what, call, arguments = heapq.heappop(self._due)
        self.count += 1
        self.trace = crc32(f"{self.now:.9f} {what}".encode(), self.trace)
        call(*arguments)
        return True
