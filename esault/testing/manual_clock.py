"""A clock that stands still until it is told."""

from __future__ import annotations

__all__ = ["ManualClock"]


class ManualClock:
    """Call it for the time, seconds since the epoch."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = float(start)

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass. Raises ValueError for a negative time."""
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} s")
        self._now += seconds

    def advance_to(self, now: float) -> None:
        """Let time pass until `now`; a time that has passed changes nothing."""
        self._now = max(self._now, now)
