"""What the sub-units of a unit have reported, the dead ones included."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from esault.histogram import Histogram
from esault.messages.control import Rows, Status

__all__ = ["Measurements", "total"]

_NOW = {"backlog", "elements", "roots_open"}


def total(rows: Iterable[Rows]) -> Rows:
    """Counts summed up."""
    rows = list(rows)
    return Rows(**{f.name: sum(getattr(r, f.name) for r in rows) for f in fields(Rows)})


class Measurements:
    """The last status of every sub-unit, living or dead; counts of the dead stay, what they held is lost."""

    def __init__(self) -> None:
        self._living: dict[int, Status] = {}
        self._dead: dict[int, Status] = {}
        #: elements whose state died with their process
        self.state_lost = 0

    def take(self, status: Status) -> None:
        """A report of a living sub-unit."""
        if status.incarnation not in self._dead:
            self._living[status.incarnation] = status

    def died(self, incarnation: int) -> Status | None:
        """The sub-unit is dead without having stopped; its last report, if it made one."""
        status = self._living.pop(incarnation, None)
        if status is not None:
            self._dead[incarnation] = status
            self.state_lost += status.rows.elements
        return status

    def left(self, status: Status) -> None:
        """The last report of a sub-unit that stopped in order while its unit goes on."""
        self._living.pop(status.incarnation, None)
        self._dead[status.incarnation] = status

    def last(self, incarnation: int) -> Status | None:
        """The last report of a living sub-unit."""
        return self._living.get(incarnation)

    @property
    def counts(self) -> Rows:
        """All counts of the unit."""
        living = total(s.rows for s in self._living.values())
        dead = total(s.rows for s in self._dead.values())
        sums: dict[str, Any] = {
            f.name: getattr(living, f.name) + (0 if f.name in _NOW else getattr(dead, f.name)) for f in fields(Rows)
        }
        return Rows(**sums)

    def histogram(self, name: str) -> Histogram:
        """`latency` or `end_to_end` of all sub-units together."""
        merged = Histogram()
        for status in (*self._living.values(), *self._dead.values()):
            snapshot = getattr(status, name)
            if snapshot is not None:
                merged.merge(Histogram.from_snapshot(snapshot))
        return merged

    @property
    def progress(self) -> tuple[float, float] | None:
        """(done, total) of a spout's sub-units together; None where one of them cannot know."""
        parts = [s.progress for s in self._living.values()]
        if not parts or any(p is None for p in parts):
            return None
        return sum(p[0] for p in parts if p), sum(p[1] for p in parts if p)
