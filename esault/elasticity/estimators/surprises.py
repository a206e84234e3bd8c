"""The accuracy of forecasts of late: the most that came beyond what had been expected.

It says how much room is needed: new sub-units serve about `LEAD` seconds after more has come than was foreseen, and until then what
is there must do. What a window may bring by chance has room of its own where sub-units are counted, so only what is beyond it is a surprise:
300 tuples a second swing by a fifth now and then without anything having been foretold wrongly.
"""

from __future__ import annotations

from collections import deque

__all__ = ["ENOUGH", "KEPT", "LEAD", "Surprises"]

#: seconds before which a rate is foretold here: two windows until a change is seen and no chance, the start, the hand-over
LEAD = 1.25
#: seconds over which rates are compared: a single window says little
SPAN = 1.0
#: seconds that are remembered, and that must have been seen before they say anything
KEPT, ENOUGH = 60.0, 25.0


class Surprises:
    """Takes what is foretold and what came, window by window. Rates are tuples a second."""

    def __init__(self) -> None:
        #: (end of the window that it is for, rate), the oldest first
        self._foretold: deque[tuple[float, float]] = deque()
        #: (seconds, what came beyond chance, what was foretold) of the windows within SPAN
        self._newest: deque[tuple[float, float, float]] = deque()
        #: (when, share)
        self._seen: deque[tuple[float, float]] = deque()

    def foretell(self, end: float, rate: float) -> None:
        """So much is expected in the window that ends then. Ends rise from call to call."""
        self._foretold.append((end, rate))

    def add(self, end: float, seconds: float, rate: float, chance: float = 0.0) -> None:
        """Add the window that has ended; `chance`: so much more is no surprise, tuples a second."""
        expected = None
        while self._foretold and self._foretold[0][0] <= end + seconds / 2:
            expected = self._foretold.popleft()[1]
        if expected is None:
            return
        self._newest.append((seconds, seconds * (rate - chance), seconds * expected))
        while sum(t for t, _, _ in self._newest) - self._newest[0][0] > SPAN - 1e-6:
            self._newest.popleft()
        if sum(t for t, _, _ in self._newest) > SPAN - 1e-6:
            came, foretold = (sum(each[i] for each in self._newest) for i in (1, 2))
            self._seen.append((end, came / max(foretold, 1.0)))
            while self._seen[0][0] < end - KEPT:
                self._seen.popleft()

    @property
    def worst(self) -> float | None:
        """Return the excess beyond chance over the forecast, at the worst of the last `KEPT` seconds; None while too little is known."""
        if not self._seen or self._seen[-1][0] - self._seen[0][0] < ENOUGH:
            return None
        return max(share for _, share in self._seen)
