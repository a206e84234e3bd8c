"""The seconds that a tuple takes a unit, and the tuples that come out for it, from windows that are added up until there is enough.

A window of a quarter of a second holds hundreds of quick tuples and a part of a slow one. So windows are joined until they hold
`FEWEST` tuples, or one at least and `LONG` seconds of processing: ten tuples of 100 ms are known after a second, and one of 10 s
as soon as it is over.
"""

from __future__ import annotations

from collections import deque

__all__ = ["ServiceEstimate"]

#: tuples, or one tuple and seconds of processing, below which windows say too little
FEWEST, LONG = 20, 1.0
#: of a measurement by `FEWEST` tuples, and by any number of them: one by few says less
LEARNING, LEAST = 0.3, 0.1
#: seconds that a tuple takes at least: a clock may not be fine enough to tell
SHORTEST = 1e-8
#: tuples' time over which it is told how busy a unit was
SPAN = 2.0


class ServiceEstimate:
    """Takes what one unit has counted in windows that follow each other."""

    def __init__(self) -> None:
        #: seconds a tuple, without waiting; None until there was enough
        self.service: float | None = None
        #: tuples out for one in
        self.selectivity = 1.0
        #: of the windows that are not used yet
        self._processed = self._emitted = self._busy = 0.0
        #: (seconds, seconds of processing of a sub-unit on average), the newest last
        self._spent: deque[tuple[float, float]] = deque()

    def add(
        self,
        processed: float,
        emitted: float,
        busy: float,
        seconds: float,
        width: int = 1,
        overhead: float = 1.0,
        opened: float = 0.0,
    ) -> None:
        """Add a window of so many seconds: tuples, and seconds of processing of all its `width` sub-units together.

        `overhead`: useful time over time of processing, 1 or more. `opened`: of that time, for tuples that are not over at its end,
        less what was so at its start. Where hundreds of calls are open, a second of them has few that ended.
        """
        self._spend(seconds, busy / max(1, width))
        self._processed += processed
        self._emitted += emitted
        self._busy += busy - opened
        if self._processed < 1.0 or (self._processed < FEWEST and self._busy < LONG):
            return
        service = max(SHORTEST, max(0.0, self._busy) / self._processed * overhead)
        selectivity = self._emitted / self._processed
        if self.service is None:
            self.service, self.selectivity = service, selectivity
        else:
            learning = max(LEAST, LEARNING * min(1.0, self._processed / FEWEST))
            self.service += learning * (service - self.service)
            self.selectivity += learning * (selectivity - self.selectivity)
        self._processed = self._emitted = self._busy = 0.0

    def _spend(self, seconds: float, busy: float) -> None:
        spent = self._spent
        spent.append((seconds, busy))
        length = sum(each for each, _ in spent)
        while len(spent) > 1 and length - spent[0][0] >= self.span:
            length -= spent.popleft()[0]

    @property
    def span(self) -> float:
        """Seconds in which a sub-unit that is full has told of its work: counts come when a tuple is over."""
        return SPAN * (self.service or 0.0)

    @property
    def busy(self) -> float:
        """Share of their time that sub-units have processed of late: in the newest window, and for `span` seconds at least."""
        seconds = sum(each for each, _ in self._spent)
        return sum(busy for _, busy in self._spent) / seconds if seconds > 0 else 0.0

    @property
    def missing(self) -> str:
        """Say what is there of what is needed."""
        return f"{self._processed:.0f} of {FEWEST} tuples were processed, and for {self._busy:.1f} of {LONG:g} s"
