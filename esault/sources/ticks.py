"""Ticks: tuples that come because it is time for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from esault.errors import TopologyError
from esault.topology.context import Context
from esault.topology.spout import EndOfStream, Spout

__all__ = ["Ticks"]


class Ticks(Spout[None, float]):
    """Offers a tuple at each time of a schedule: no key, and as value the time at which it is due, seconds since the epoch.

    Subclasses write `times`. A position is the last tick's time and number, so that it goes on behind it. What came due before the
    first read of a process that goes on was missed; `missed` says what becomes of it.
    """

    def __init__(self, who: str, missed: str, count: int | None) -> None:
        if missed not in ("all", "once", "skip"):
            raise TopologyError(
                f'{who}: missed={missed!r}: write "all", "once" (the last one) or "skip", of ticks that came due while nothing ran'
            )
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
            raise TopologyError(
                f"{who}: count={count!r}: write how many ticks there are, at least 1, or None for no end"
            )
        self._who, self._missed, self._count = who, missed, count
        #: when the schedule began, and the time and the number of its last tick that is past
        self._began = 0.0
        self._last: float | None = None
        self._number = 0
        self._coming: Iterator[tuple[int, float]] = iter(())
        self._next: tuple[int, float] | None = None
        self._goes_on = False
        self._left_out = 0
        self._opened = 0.0
        self._due: float | None = None

    def times(self, began: float, last: float | None, number: int) -> Iterator[tuple[int, float]]:
        """Yield number and time of each tick behind the last one, in order; `last` None: there was none, `began` is now."""
        raise NotImplementedError(f"{type(self).__name__} must define times(began, last, number)")

    def open(self, context: Context) -> None:
        """Begin the schedule now."""
        self.context = context
        self._opened = self._began = context.now()
        self._set(None, 0)

    def seek(self, position: Any) -> None:
        """Go on behind this tick."""
        self._began, last, number = position
        self._set(last, number)
        self._goes_on = True

    def position(self) -> tuple[float, float | None, int]:
        """Return when the schedule began, and time and number of the last tick."""
        return self._began, self._last, self._number

    def read(self, limit: int) -> list[tuple[None, float]]:
        """Return the ticks that are due."""
        self._due = None
        if limit < 1:
            return []
        now = self.context.now()
        if self._goes_on:
            self._goes_on = False
            self._pass_over(now)
        rows: list[tuple[None, float]] = []
        while self._next is not None and self._next[1] <= now and len(rows) < limit:
            rows.append((None, self._next[1]))
            self._take()
        if rows:
            # what was missed is late by as long as nothing ran: that is no latency of this process
            self._due = max(rows[0][1], self._opened)
        elif self._next is None:
            raise EndOfStream
        return rows

    def due(self) -> float | None:
        """Return when the first tick of the last read was due, or this process began; None if there was none."""
        return self._due

    def next_due(self) -> float | None:
        """Return the time of the next tick."""
        return None if self._next is None else self._next[1]

    def progress(self) -> tuple[float, float] | None:
        """Return ticks so far, and in all; None without `count`."""
        return None if self._count is None else (float(self._number), float(self._count))

    def counters(self) -> dict[str, int]:
        """Return the number of ticks that were missed and left out."""
        return {"missed_ticks": self._left_out} if self._left_out else {}

    def _set(self, last: float | None, number: int) -> None:
        self._last, self._number = last, number
        self._coming = self.times(self._began, last, number)
        self._look()

    def _look(self) -> None:
        coming = next(self._coming, None)
        self._next = coming if coming is None or self._count is None or coming[0] <= self._count else None

    def _take(self) -> None:
        assert self._next is not None
        self._number, self._last = self._next
        self._look()

    def _pass_over(self, now: float) -> None:
        """Say what was missed, and leave out what is to be left out."""
        if self._next is None or self._next[1] > now:
            return
        first, before = self._next[1], (self._last, self._number)
        while self._next is not None and self._next[1] <= now:
            kept = (self._last, self._number)
            self._take()
        last, missed = self._last, self._number - before[1]
        left_out = {"all": 0, "once": missed - 1, "skip": missed}[self._missed]
        if self._missed != "skip":
            self._set(*(before if self._missed == "all" else kept))
        self._left_out += left_out
        what = {"all": "each comes now", "once": "the last one comes now", "skip": "left out"}[self._missed]
        assert last is not None
        self.context.logger.warning(
            "%s: %d missed while nothing ran, from %s to %s: %s", self._who, missed, _said(first), _said(last), what
        )


def _said(time: float) -> str:
    return datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")
