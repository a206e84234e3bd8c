"""The gain of a full unit's last growth in tuples a second: what its sub-units share, as a service or a lock, may be what limits."""

from __future__ import annotations

from esault.elasticity.estimators.service_estimate import FEWEST

__all__ = ["GrowthGain"]

#: share of what a growth promised that it must have brought, for another one to be worth a try
WORTH = 0.25
#: seconds that are measured at a width, at least
MEASURED = 0.2
#: seconds until it is tried again; twice as long after each growth that brought nothing, up to the longest
AGAIN, LONGEST = 30.0, 480.0


class GrowthGain:
    """Takes the windows of one unit. A growth is judged where it was full before, and is full again behind it."""

    def __init__(self) -> None:
        #: tuples and seconds of the windows in which it has been full without a pause, at the width that it has
        self._width = 0
        self._processed = self._seconds = 0.0
        #: sub-units and tuples a second before the last growth, and sub-units behind it
        self._before: tuple[int, float, int] | None = None
        self._again = AGAIN
        #: until when it does not grow, and why
        self._until: float | None = None
        self._said = ""

    def add(self, full: bool, processed: float, seconds: float, width: int) -> None:
        """The next window."""
        if not full or width != self._width:
            self._width, self._processed, self._seconds = width, 0.0, 0.0
        if full:
            self._processed += processed
            self._seconds += seconds

    @property
    def rate(self) -> float | None:
        """Tuples a second at this width while it is full; None as long as too little is measured."""
        enough = self._processed >= FEWEST and self._seconds >= MEASURED
        return self._processed / self._seconds if enough else None

    def grows(self, width: int, after: int, rate: float | None = None) -> None:
        """A growth is asked for. `rate`: tuples a second at this width, where no window has told it."""
        rate = self.rate if rate is None else rate
        self._before = None if rate is None else (width, rate, after)
        self._until = None

    def why_not(self, width: int, now: float, blind: bool = True) -> str:
        """Say why a full unit is not to grow once more; empty where nothing speaks against it.

        `blind`: its source is held back, so that all that a unit can do is asked of it. Otherwise nothing new is judged.
        """
        if self._before is None or self._before[2] != width:
            return ""
        if self._until is not None:
            return self._said if now < self._until else ""
        rate, (before, then, after) = self.rate, self._before
        if rate is None or not blind:
            return ""
        if rate / then - 1.0 >= WORTH * (after / before - 1.0):
            self._again = AGAIN
            return ""
        self._until, self._again = now + self._again, min(LONGEST, 2 * self._again)
        self._said = (
            f"{after} in place of {before} got {rate:,.0f} tuples/s done in place of {then:,.0f}: something else limits"
        )
        return self._said
