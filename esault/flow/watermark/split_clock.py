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
        #: since when no split is asked for more, for what was read finds no room
        self._held_at: float | None = None

    def clock(self, given: EventTime, now: Callable[[], float]) -> SplitClock:
        """Return a clock for a place where event time starts."""
        made = SplitClock(given, now, self)
        self._clocks.append(made)
        return made

    def hold(self, now: float) -> None:
        """No split is asked for more until `go_on`: what they have is not known, and none counts as silent."""
        if self._held_at is None:
            self._held_at = now

    def go_on(self, now: float) -> None:
        """They are asked again; the time between is no silence."""
        if self._held_at is not None:
            lost, self._held_at = now - self._held_at, None
            for id, since in self.quiet.items():
                if since is not None:
                    self.quiet[id] = since + lost

    def quiet_since(self, id: str) -> float | None:
        """Return since when a split has had nothing to read; None: it has, or is not asked."""
        return None if self._held_at is not None else self.quiet[id]

    def begin(self, id: str, times: Sequence[float]) -> None:
        """A split is read here from now on; `times`: how far it had come where it was read before, by clock."""
        self.quiet[id] = None
        for clock, time in zip(self._clocks, times):
            clock.of(id).begin_at(time)

    def over(self, id: str) -> None:
        """Take note that a split was read to its end."""
        for clock in self._clocks:
            clock.over(id)

    def past_times(self) -> tuple[float, ...]:
        """Return how far the splits had come that have ended, by clock; empty where time does not go on from them."""
        times = tuple(clock.past for clock in self._clocks)
        return times if any(time > BEGINNING for time in times) else ()

    def begin_past(self, times: Sequence[float]) -> None:
        """Time goes on from splits that ended before the run."""
        for clock, time in zip(self._clocks, times):
            clock.begin_past(time)

    def times(self, id: str) -> tuple[float, ...]:
        """Return how far a split has come, by clock, for a checkpoint; empty where none goes on with the clock."""
        if not any(clock.advances for clock in self._clocks):
            return ()
        return tuple(clock.of(id).watermark for clock in self._clocks)

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
        #: of the splits that have ended, the one that had come furthest, where time goes on in silence
        self._past: Clock | None = None

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

    def over(self, id: str) -> None:
        """Forget a split that was read to its end; while nothing else is read, time goes on from it if it was asked for."""
        clock = self._clocks.get(id)
        if clock is not None and self.advances and (self._past is None or clock.watermark >= self._past.watermark):
            self._past = clock
        self.end(id)

    @property
    def past(self) -> float:
        """Time up to which the splits had come that have ended."""
        return BEGINNING if self._past is None else self._past.watermark

    def begin_past(self, time: float) -> None:
        """Time goes on from splits that ended before the run."""
        if self.advances and time > self.past:
            self._past = self._make()
            self._past.begin_at(time)

    def observe(self, values: Sequence[Any]) -> None:
        """Rows of the current split pass."""
        self.of(self._splits.current).observe(values)

    def observe_columns(self, values: Any) -> bool:
        """As `observe`, of columns."""
        return self.of(self._splits.current).observe_columns(values)

    def stand(self, now: float, quiet_since: float | None) -> tuple[float, bool, float]:
        """Return the watermark, whether all splits are idle, and when that changes if nothing comes."""
        if not self._splits.dealt:
            return BEGINNING, False, END_OF_TIME
        least, most, next_at, busy = END_OF_TIME, self._said, END_OF_TIME, False
        for id in self._splits.quiet:
            value, idle, idle_at = self.of(id).stand(now, self._splits.quiet_since(id))
            next_at = min(next_at, idle_at)
            if idle:
                self._out.add(id)
                most = max(most, value)
                continue
            busy = True
            if id not in self._out or not BEGINNING < value < self._said:
                self._out.discard(id)
                least = min(least, value)
        if not busy:
            if self._past is not None:
                value, idle, idle_at = self._past.stand(now, now if quiet_since is None else quiet_since)
                most, next_at = max(most, value if idle else BEGINNING), min(next_at, idle_at)
            return most, True, next_at
        if least == END_OF_TIME:
            least = self._said  # all that are not idle have to catch up
        self._said = max(self._said, least)
        # A split that was handed over may be behind: what is said is true of all that are here.
        return least, False, next_at
