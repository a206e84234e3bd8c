"""The watermark of a sub-unit that reads splits: the least over its splits (FLIP-27, per-split watermarks)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from esault.flow.watermark.clock import BEGINNING, END_OF_TIME, Clock
from esault.topology.event_time import EventTime

__all__ = ["OpenSplits", "SplitClock"]


class OpenSplits:
    """The splits that are open in a sub-unit, and the clocks that tell them apart."""

    def __init__(self) -> None:
        #: the split that the rows are of that pass
        self.current = ""
        #: id -> since when there has been nothing to read of it; None: there is
        self.quiet: dict[str, float | None] = {}
        #: False until the unit has said which splits are read here first: till then time stands still
        self.dealt = False
        self._clocks: list[SplitClock] = []

    def clock(self, given: EventTime, now: Callable[[], float]) -> SplitClock:
        """Return a clock for a place where event time starts."""
        made = SplitClock(given, now, self)
        self._clocks.append(made)
        return made

    def begin(self, id: str, times: Sequence[float]) -> None:
        """A split is read here from now on; `times`: how far it had come where it was read before, by clock."""
        self.quiet[id] = None
        for clock, time in zip(self._clocks, times):
            clock.of(id).begin_at(time)

    def end(self, id: str) -> tuple[float, ...]:
        """A split is read here no more; how far it has come, by clock."""
        self.quiet.pop(id, None)
        return tuple(clock.end(id) for clock in self._clocks)


class SplitClock(Clock):
    """A clock for each split. A split that is idle is left out, and stays out until it has caught up."""

    def __init__(self, given: EventTime, now: Callable[[], float], splits: OpenSplits) -> None:
        super().__init__(given, now, False)
        self._make = partial(Clock, given, now, False)
        self._splits = splits
        self._clocks: dict[str, Clock] = {}
        #: splits that were idle, and have not come up to what was said since
        self._out: set[str] = set()
        self._said = BEGINNING

    def of(self, id: str) -> Clock:
        """Return the clock of a split."""
        clock = self._clocks.get(id)
        if clock is None:
            clock = self._clocks[id] = self._make()
        return clock

    def end(self, id: str) -> float:
        """Forget a split; the watermark that it had."""
        self._out.discard(id)
        clock = self._clocks.pop(id, None)
        return BEGINNING if clock is None else clock.watermark

    def observe(self, values: Sequence[Any]) -> None:
        """Rows of the current split pass."""
        self.of(self._splits.current).observe(values)

    def stand(self, now: float, quiet_since: float | None) -> tuple[float, bool, float]:
        """Return the watermark, whether all splits are idle, and when the next of them will be if nothing comes."""
        if not self._splits.dealt:
            return BEGINNING, False, END_OF_TIME
        least, most, next_at, busy = END_OF_TIME, self._said, END_OF_TIME, False
        for id, quiet in self._splits.quiet.items():
            value, idle, idle_at = self.of(id).stand(now, quiet)
            if idle:
                self._out.add(id)
                most = max(most, value)
                continue
            busy, next_at = True, min(next_at, idle_at)
            if id not in self._out or not BEGINNING < value < self._said:
                self._out.discard(id)
                least = min(least, value)
        if not busy:
            return most, True, END_OF_TIME
        if least == END_OF_TIME:
            least = self._said  # all that are not idle have to catch up
        self._said = max(self._said, least)
        # A split that was handed over may be behind: what is said is true of all that are here.
        return least, False, next_at
