"""Schedules of a pipeline's runs: after so many seconds, at the times of a crontab line, or after each landing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from esault.errors import SinkError
from esault.object_store.stored_object import is_url
from esault.sinks.landing import table_log
from esault.sinks.landing.log import CommitLog
from esault.sources.cron import Cron

__all__ = ["AtTimes", "Every", "Landed", "Schedule", "repeat"]

#: seconds between two looks
POLL = 1.0


class Schedule(Protocol):
    """One who says when a run is due."""

    def due(self, now: float) -> bool:
        """Return whether one is, at `now` (seconds since the epoch); it is not asked again for that one."""
        ...


class Every:
    """At once, then each `seconds`; what comes due while one runs is one run."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = float("-inf")

    def due(self, now: float) -> bool:
        """See `Schedule`."""
        if now < self._next:
            return False
        missed = max(0.0, (now - self._next) // self._seconds) if self._next > float("-inf") else 0.0
        self._next = now + self._seconds if self._next == float("-inf") else self._next + (missed + 1) * self._seconds
        return True


class AtTimes:
    """At the times of a crontab line, UTC; what comes due while one runs is one run. TopologyError for no such line."""

    def __init__(self, line: str, now: float) -> None:
        self._times: Iterator[tuple[int, float]] = Cron(line).times(now, None, 0)
        self._next: float | None = next(self._times)[1]

    def due(self, now: float) -> bool:
        """See `Schedule`."""
        if self._next is None or now < self._next:
            return False
        while self._next is not None and self._next <= now:
            self._next = next((at for _, at in self._times), None)
        return True


class Landed:
    """Whenever one of the tables in `folders` has a new version, once any of them has rows; also of one that is not there yet."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = list(folders)
        self._seen: list[int] | None = None
        #: logs at addresses, of which an entry that is not there yet is asked for, and not all again
        self._far: dict[str, CommitLog] = {}

    def due(self, now: float) -> bool:
        """See `Schedule`."""
        versions = [self._version(folder) for folder in self._folders]
        if versions == self._seen or not any(version >= 0 for version in versions):
            return False
        self._seen = versions
        return True

    def _version(self, folder: str) -> int:
        try:
            if folder in self._far:
                state = self._far[folder].refresh()
            else:
                log = table_log(folder)
                state = log.state
                if is_url(folder):
                    self._far[folder] = log
            return state.version if state.written else -1
        except SinkError:
            self._far.pop(folder, None)
            return -1


def repeat(
    run: Callable[[], float | None], schedule: Schedule, now: Callable[[], float], wait: Callable[[float], object]
) -> None:
    """Call `run` whenever it is due, until one of the callables raises. Where it returns seconds, it is due still, and called behind them.

    What comes due meanwhile is that same run.
    """
    due, left = False, 0.0
    while True:
        due = schedule.due(now()) or due
        if due and left <= 0:
            again = run()
            due, left = again is not None, again or 0.0
        wait(POLL)
        left -= POLL
