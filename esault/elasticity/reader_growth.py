"""More readers for a source in splits whose readers have no time left, by what was measured; and fewer again where they are not needed."""

from __future__ import annotations

from collections import deque

from esault.value_class import value_class

__all__ = ["ReaderGrowth", "ReaderLoad"]

#: seconds that are looked at
WINDOW = 1.0
#: share of its time from which a reader has no more
FULL = 0.9
#: share of its time that it may have been held back by those behind it
HELD = 0.1
#: processors that must be free for one more
SPARE = 0.6
#: seconds that the input must last for one more to be worth it
LASTS = 1.0
#: seconds, and share of the time of one fewer, within which all of the work must fit before one goes
QUIET, FITS = 15.0, 0.7


@value_class(frozen=True)
class ReaderLoad:
    """The readers of one source at one moment, counted since the start, all of them together."""

    at: float
    width: int
    #: seconds on the processor or waiting for one; None: not known
    cpu: float | None
    #: seconds for which they might not read, since what they had read was not processed
    held: float
    #: splits that have not ended, and those that have
    splits: int
    ended: int
    #: no other splits will come
    bounded: bool


class ReaderGrowth:
    """Looks at the readers of one source, of which there are `least` at least."""

    def __init__(self, least: int, most: int | None) -> None:
        self._least, self._most = least, most
        self._seen: deque[ReaderLoad] = deque()
        self._began: float | None = None
        #: since when all of the work would have fitted into one fewer
        self._quiet_since: float | None = None

    def look(self, load: ReaderLoad, spare: float) -> tuple[int, str] | None:
        """Return how many readers there are to be, and why; None: as many as there are. `spare`: processors that are free."""
        if self._began is None:
            self._began = load.at
        seen = self._seen
        # Where all have gone back, they count anew.
        if seen and (seen[-1].width != load.width or (seen[-1].cpu or 0.0) > (load.cpu or 0.0)):
            seen.clear()
            self._quiet_since = None
        seen.append(load)
        while len(seen) > 2 and load.at - seen[1].at >= WINDOW:
            seen.popleft()
        before = seen[0]
        length = load.at - before.at
        if length < WINDOW or load.cpu is None or before.cpu is None:
            return None
        needed = (load.cpu - before.cpu) / length
        held = (load.held - before.held) / (length * load.width)
        return self._grown(load, needed / load.width, held, spare) or self._shrunk(load, needed)

    def _grown(self, load: ReaderLoad, busy: float, held: float, spare: float) -> tuple[int, str] | None:
        most = load.splits if self._most is None else min(load.splits, self._most)
        wanted = min(most, 2 * load.width, load.width + int(spare + 1 - SPARE))
        if busy < FULL or held > HELD or wanted <= load.width or self._left(load) < LASTS:
            return None
        return wanted, (
            f"reading took {min(1.0, busy):.0%} of a core for each, it was held back for {held:.0%} of the time, and {spare:.1f} cores are free"
        )

    def _left(self, load: ReaderLoad) -> float:
        """Return for how many seconds the input lasts, by the splits that have ended so far; infinite where that is not known."""
        if not load.bounded or not load.ended:
            return float("inf")
        return load.splits * (load.at - (self._began or 0.0)) / load.ended

    def _shrunk(self, load: ReaderLoad, needed: float) -> tuple[int, str] | None:
        if load.bounded or load.width <= self._least or needed > FITS * (load.width - 1):
            self._quiet_since = None
            return None
        if self._quiet_since is None:
            self._quiet_since = load.at
        if load.at - self._quiet_since < QUIET:
            return None
        return load.width - 1, f"reading took {needed:.1f} cores in all for {QUIET:g} s"
