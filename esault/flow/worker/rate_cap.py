"""The limit of a throttled sub-unit: a token bucket tells how many tuples it may process by now."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["RateCap", "RateLimit", "changed"]

#: seconds of its rate that the bucket holds at most: what may come at once after a pause
HELD = 0.05
#: seconds of its rate that must be in it before any is taken: a turn for each tuple would cost more than the tuple
PORTION = 0.01


class RateCap:
    """A plain core: the time and the count of what was done so far go in, how much more may be done comes out.

    A sub-unit that does more than it may (a batch that cannot be divided) goes into debt and waits longer. Over any span
    of `s` seconds at most `rate * s` tuples are done, and `held` more, and what the last one exceeded.
    """

    __slots__ = ("_at", "_done", "_level", "held", "portion", "rate", "until")

    def __init__(self, rate: float, until: float, now: float, done: int) -> None:
        """`rate`: tuples a second, above 0; `until`: seconds since the epoch; `done`: tuples so far, over the sub-unit's life."""
        self._at = now
        self._done = done
        self._level = 0.0
        self.change(rate, until)

    def change(self, rate: float, until: float) -> None:
        """Set another rate and end from the last call of `allowed` on; what the bucket holds or lacks stays if it fits."""
        self.rate = rate
        self.until = until
        #: tuples that the bucket holds at most, and that must be in it; a tuple is not divided
        self.held = max(1.0, HELD * rate)
        self.portion = max(1.0, PORTION * rate)
        self._level = min(self._level, self.held)

    def allowed(self, now: float, done: int) -> int:
        """Return how many more tuples may be done at `now`, `done` being those so far; 0: none before `wake_at`."""
        level = self._level - (done - self._done) + max(0.0, now - self._at) * self.rate
        self._level = level = min(self.held, level)
        self._at, self._done = max(now, self._at), done
        # Seconds since the epoch are known to a quarter of a microsecond.
        return max(1, int(level)) if level + 1e-6 * self.rate >= self.portion else 0

    @property
    def wake_at(self) -> float:
        """The time at which more may be done, by the last call of `allowed`, or the end, seconds since the epoch."""
        return min(self.until, self._at + max(0.0, self.portion - self._level) / self.rate)


def changed(cap: RateCap | None, rate: float, seconds: float, now: float, done: int) -> RateCap | None:
    """Return what holds from now on instead of `cap`: another rate for so many seconds, or, for 0 seconds, none."""
    if seconds <= 0:
        return None
    if cap is None:
        return RateCap(rate, now + seconds, now, done)
    cap.allowed(now, done)  # what has come by now came at the rate of before
    cap.change(rate, now + seconds)
    return cap


class RateLimit:
    """The rate cap of a sub-unit, while there is one."""

    def __init__(self, done: Callable[[], int]) -> None:
        """`done` tells how many tuples were done so far."""
        self._done = done
        #: None: it may work as fast as it can
        self.cap: RateCap | None = None

    def change(self, rate: float, seconds: float, now: float) -> None:
        """Allow another rate for so many seconds; 0 seconds: any rate."""
        self.cap = changed(self.cap, rate, seconds, now, self._done())

    def allowed(self, now: float, most: int) -> int:
        """Return how many tuples may be done now, of `most`; lifts a cap whose time is over."""
        cap = self.cap
        if cap is None or now >= cap.until:
            self.cap = None
            return most
        return min(most, cap.allowed(now, self._done()))

    def wake_at(self, at: float) -> float:
        """Return when something may be done that could be done from `at` on."""
        return at if self.cap is None else max(at, self.cap.wake_at)
