"""The pace of subscales: how long an old owner rests behind one before it says that it has handed it over."""

from __future__ import annotations

__all__ = ["Pace"]

#: seconds of a rest at most: what a longer subscale delays, bulk state in turns between tuples, is little
LONGEST = 0.1
#: part of the looks at the inbox that find nothing where an old owner keeps up with its load
KEEPS_UP = 0.25


class Pace:
    """An old owner that keeps up rests as long as the subscale took, 0.1 s at most, so that what it has delayed is worked off.

    One that does not keep up goes on at once: it is the change that helps it.
    """

    def __init__(self) -> None:
        self._since = 0.0
        self._looks = self._empty = 0

    def begin(self, now: float) -> None:
        """A subscale begins."""
        self._since = now
        self._looks = self._empty = 0

    def look(self, waits: bool) -> None:
        """Note whether tuples wait here now."""
        self._looks += 1
        self._empty += not waits

    def rests_until(self, now: float) -> float:
        """Return when the next subscale may begin, now that this one has been handed over."""
        keeps_up = self._empty >= KEEPS_UP * self._looks
        return now + min(LONGEST, now - self._since) if keeps_up else now
