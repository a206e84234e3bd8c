"""Work of a sub-unit by the clock, whatever comes in: it looks for overdue roots, and reports."""

from __future__ import annotations

from collections.abc import Callable

from esault.flow.delivery.acks import Acks
from esault.flow.delivery.roots import Roots

__all__ = ["Upkeep"]

#: seconds between two looks for overdue roots
WATCH_EVERY = 0.05


class Upkeep:
    """Two timers; a turn compares the time with the first of them only."""

    def __init__(
        self,
        acks: Acks,
        roots: Roots,
        tracked: bool,
        now: float,
        report_at: float,
        report: Callable[[float], float],
        stalled: Callable[[], None],
    ) -> None:
        """`tracked`: roots are acked. `report` reports, and returns when to do so again.

        `stalled` is called when roots have had no acks for too long.
        """
        self._acks = acks
        self._roots = roots
        self._tracked = tracked
        self._report = report
        self._stalled = stalled
        self._watch_at = now + WATCH_EVERY
        self._report_at = report_at
        #: when there is something to do, seconds since the epoch
        self.due_at = min(self._watch_at, report_at)

    def run(self, now: float) -> None:
        """Do what is due."""
        if now >= self._watch_at:
            self._watch_at = now + WATCH_EVERY
            self._acks.send()
            if self._tracked:
                self._roots.watch(now)
                if self._roots.stalled:
                    self._roots.stalled = False
                    self._stalled()
        if now >= self._report_at:
            self._report_at = self._report(now)
        self.due_at = min(self._watch_at, self._report_at)

    def report_at(self, at: float) -> None:
        """Report then, where that is sooner."""
        self._report_at = min(self._report_at, at)
        self.due_at = min(self.due_at, at)

    @property
    def wake_at(self) -> float:
        """The time at which a sub-unit that has nothing else to do must wake up."""
        # Twenty times a second is half of what an idle sub-unit costs: not where nothing can be overdue.
        return self.due_at if self._acks or self._roots.open_count else self._report_at
