"""The bolt behind `stream.join_table(..., as_of=True)`: each tuple with the value that the table had at the tuple's own time."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from typing import Any

from esault.topology.table_join import LEFT, UNMATCHED
from esault.topology.timed_bolt import NEVER, TimedBolt, behind

__all__ = ["AsOfJoin"]


class AsOfJoin(TimedBolt):
    """Keeps the versions of a table's value, and tuples until the watermark has passed them; then no older version can come.

    A version holds from its own time on until that of the next one. Of the versions that the watermark has passed only the newest stays.
    A version behind the watermark is taken unless it has passed a newer one.
    """

    # Slots, so that an object is small: there may be millions.
    __slots__ = ("expire_after", "last", "missing", "number", "versions", "waiting")

    def __init__(self, missing: str, expire_after: float | None) -> None:
        super().__init__()
        self.missing, self.expire_after = missing, expire_after
        #: (time, number, value) in the order of their times, and of two of one time in the order in which they came
        self.versions: list[tuple[float, int, Any]] = []
        self.waiting: list[tuple[float, int, Any]] = []
        self.number = 0
        #: the latest time of a tuple or a version
        self.last = -math.inf

    def take(self, stream: str, value: Any, at: float, watermark: float) -> bool:
        """Keep a tuple, or a version."""
        if at < watermark:
            if stream == LEFT:
                return False
            settled = bisect_left(self.versions, (watermark,))
            if settled and self.versions[settled - 1][0] > at:
                return False
        self.number += 1
        self.last = max(self.last, at)
        insort(self.waiting if stream == LEFT else self.versions, (at, self.number, value))
        return True

    @property
    def due(self) -> float:
        """Return when a tuple can be answered, a version is of no use any more, or the key expires."""
        waiting, versions = self.waiting, self.versions
        due = behind(waiting[0][0]) if waiting else NEVER
        if len(versions) > 1:
            due = min(due, behind(versions[1][0]))
        if self.expire_after is not None and versions:
            due = min(due, behind(self.last + self.expire_after))
        return due

    def advance(self, watermark: float) -> None:
        """Answer the tuples that the watermark has passed, and let go of versions that are of no use any more."""
        gone = 0
        for at, _, value in self.waiting:
            if at >= watermark:
                break
            gone += 1
            newest = bisect_right(self.versions, (at, math.inf)) - 1
            if newest < 0 and self.missing == "drop":
                self.emit(self.key, value, stream=UNMATCHED)
            else:
                self.emit(self.key, (value, self.versions[newest][2] if newest >= 0 else None))
        del self.waiting[:gone]
        del self.versions[: max(0, bisect_left(self.versions, (watermark,)) - 1)]
        if self.expire_after is not None and behind(self.last + self.expire_after) <= watermark:
            self.versions.clear()

    @property
    def needed(self) -> bool:
        """Return whether there is a value, or a tuple that waits."""
        return bool(self.versions or self.waiting)

    def state(self) -> tuple[Any, ...]:
        return self.number, self.last, tuple(self.versions), tuple(self.waiting)

    def restore(self, *state: Any) -> None:
        self.number, self.last, versions, waiting = state
        self.versions, self.waiting = [tuple(kept) for kept in versions], [tuple(kept) for kept in waiting]
