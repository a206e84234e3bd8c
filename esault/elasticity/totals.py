"""The counts of a unit by one instant, and the window between two of them."""

from __future__ import annotations

from typing import NamedTuple

from esault.elasticity.view import UnitWindow

__all__ = ["Totals"]


class Totals(NamedTuple):
    """Tuples and seconds, cumulative over the unit's life; what waits and lags is of that instant."""

    arrivals: float = 0.0
    processed: float = 0.0
    emitted: float = 0.0
    dropped: float = 0.0
    busy: float = 0.0
    waiting: float = 0.0
    #: of a spout: tuples due and not read; None where it cannot be known
    lag: float | None = None
    #: of a spout: seconds in which its window was closed, all parts together
    backpressured: float = 0.0
    width: int = 1
    #: of `busy`, for tuples that were not over by then
    open_busy: float = 0.0

    def plus(self, other: Totals) -> Totals:
        """Both together."""
        lags = [t.lag for t in (self, other) if t.lag is not None]
        return Totals(
            arrivals=self.arrivals + other.arrivals,
            processed=self.processed + other.processed,
            emitted=self.emitted + other.emitted,
            dropped=self.dropped + other.dropped,
            busy=self.busy + other.busy,
            waiting=self.waiting + other.waiting,
            lag=sum(lags) if lags else None,
            backpressured=self.backpressured + other.backpressured,
            width=self.width + other.width,
            open_busy=self.open_busy + other.open_busy,
        )

    def since(self, before: Totals, start: float, end: float) -> UnitWindow:
        """The window that began with `before`. What is foreseen may turn out less: nothing is counted below zero."""
        seconds = max(1e-9, end - start)
        return UnitWindow(
            start,
            end,
            arrivals=max(0.0, self.arrivals - before.arrivals),
            processed=max(0.0, self.processed - before.processed),
            emitted=max(0.0, self.emitted - before.emitted),
            dropped=max(0.0, self.dropped - before.dropped),
            busy=max(0.0, self.busy - before.busy),
            opened=self.open_busy - before.open_busy,
            waiting_before=before.waiting,
            waiting=self.waiting,
            width=self.width,
            lag_before=before.lag,
            lag=self.lag,
            backpressured=min(1.0, max(0.0, self.backpressured - before.backpressured) / seconds / max(1, self.width)),
        )
