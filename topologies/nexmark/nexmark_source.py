"""A spout of Nexmark's events, and what all queries start with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from nexmark_events import BID, KIND, TIME, Event, Events

from esault import EndOfStream, Spout, Stream, Topology
from esault.sources import Paced

__all__ = ["Nexmark", "bids", "seconds", "source"]


class Nexmark(Spout[int, Event]):
    """The first `count` events, keyed by their kind. Knows its position; several parts take groups of events in turns."""

    parallel: ClassVar[bool] = True

    def __init__(self, count: int, events: Events) -> None:
        self._count, self._events = count, events
        self._part, self._parts = 0, 1
        self._read = 0
        self._group: list[Event] = []
        self._number = -1

    def open(self, context: Any) -> None:
        self._part, self._parts = context.part, context.parts

    def read(self, limit: int) -> Sequence[tuple[int, Event]]:
        """Up to `limit` events."""
        rows: list[tuple[int, Event]] = []
        size = self._events.group
        while len(rows) < limit:
            turn, at = divmod(self._read, size)
            number = turn * self._parts + self._part
            most = min(limit - len(rows), self._count - number * size - at)
            if most <= 0:
                break
            if number != self._number:
                self._group, self._number = self._events.in_group(number), number
            taken = self._group[at : at + most]
            rows += [(event[KIND], event) for event in taken]
            self._read += len(taken)
        if not rows and limit > 0:
            raise EndOfStream
        return rows

    def position(self) -> int:
        """Return the number of events that this part has read."""
        return self._read

    def seek(self, position: int) -> None:
        self._read = position

    def progress(self) -> tuple[float, float]:
        """Events read and in all, if all parts are as far as this one."""
        return min(float(self._read * self._parts), float(self._count)), float(self._count)


def source(
    t: Topology,
    events: int,
    rate: float = 0.0,
    per_second: float = 10_000.0,
    disorder: int = 0,
    malformed: float = 0.0,
    seed: int = 1,
) -> Stream[int, Event]:
    """So many events, at `rate` a second (0: as fast as they are taken), which are `per_second` of their own time."""
    spout = Nexmark(events, Events(seed, per_second, disorder=disorder, malformed=malformed))
    return t.spout("events", Paced(spout, rate) if rate else spout)


def bids(events: Stream[int, Event]) -> Stream[int, Event]:
    """The bids among them."""
    return events.filter(lambda event: event[KIND] == BID)


def seconds(event: Event) -> float:
    """Return when it was, in seconds since the epoch."""
    return event[TIME] / 1000
