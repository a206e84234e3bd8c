"""Times of a sub-unit's reports: they are closer in the first moments of a run, in which what is full from the start on grows."""

from __future__ import annotations

import math

from esault.messages.control import Build

__all__ = ["ReportTimes"]

#: seconds of the first moments
FIRST = 0.4
#: share of the time between two reports within which a moment is the round time behind it
NEARLY = 0.001


class ReportTimes:
    """The moments of one sub-unit's reports."""

    def __init__(self, build: Build) -> None:
        self._every = build.settings.status_every
        self._first_every = 0.0 if build.joins else build.settings.first_status_every
        self._first_until = 0.0

    def begin(self, now: float) -> float:
        """Return when to report next, now that processing begins."""
        if self._first_every:
            self._first_until = now + FIRST
        return self.after(now)

    def after(self, now: float) -> float:
        """Return when to report next. In the first moments at round times, so that all sub-units tell of the same ones."""
        return self.round_after(now) if now < self._first_until else now + self._every

    def round_after(self, now: float) -> float:
        """Return the next moment that is a multiple of the time between two reports."""
        every = self._first_every if now < self._first_until else self._every
        # 0.35 // 0.05 is 6: what is all but a round time is one, else a report would be due again at once, and for ever.
        return (math.floor(now / every + NEARLY) + 1) * every
