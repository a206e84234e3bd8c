"""The number of tuples that a spout is asked for at a time: small roots while they are on their way for long, large ones where each is quick.

A root costs the same few frames and acks whether it has ten tuples or a thousand. Where the window is closed and yet each root
comes back at once, that cost is what limits the stream, and larger roots divide it among more tuples (twice the throughput
of workload B). Where roots take long, larger ones mostly make the queue in front of user code longer. But it may be that very
cost that makes them take long: a chain of six units on two cores that others need too came back in 25 ms, stayed at small
roots for that, and paid 10 us a tuple in place of 2.5. What it is shows when a larger size is tried.
"""

from __future__ import annotations

__all__ = ["FIRST", "HELD", "LONG", "QUICK", "SLOW", "TRIED", "RootSize"]

#: tuples of the first roots, and the fewest that are asked for
FIRST = 128
#: seconds from open to processed: below, roots may grow; above, they shrink
QUICK, SLOW = 0.01, 0.02
#: ... and above, they shrink although larger ones have been found to be worth it
LONG = 0.1
#: roots of a size by whose median it is judged, and as many before them that met the queue of the size before
TRIED = 8
#: a larger size is worth it where a tuple's share of a root's time falls to this or less
WORTH = 0.8
#: roots before it is tried again
HELD = 1024


class RootSize:
    """Doubles once a round trip at most, since only a root of the present size can make it grow."""

    def __init__(self, most: int, tracked: bool) -> None:
        """`most`: the setting `root_rows`. Where nothing is acked nothing tells how long roots take: they are large at once."""
        self._most = most
        self._first = min(FIRST, most)
        #: roots do not shrink below this: the first size, or the one that is tried or was found to be worth it
        self._least = self._first
        #: tuples to ask for
        self.rows = self._first if tracked else most
        #: a tuple's share of the time at the size before, while this one is tried
        self._share: float | None = None
        #: what roots of this size took, those that do not count included
        self._took: list[float] = []
        self._held = 0

    def arrays(self, most: int) -> None:
        """The spout reads arrays, whose tuples cost little beside what the root costs: roots may be as large as this."""
        self._most = most

    def at_once(self, seconds: float, rows: int) -> None:
        """A root of so many tuples was read and processed in so long, and nothing else was done meanwhile."""
        if seconds < QUICK and rows >= self.rows:
            self.rows = min(self._most, self.rows * 2)

    def processed(self, seconds: float, rows: int, closed: bool) -> None:
        """A root of so many tuples was processed so long after it was opened; `closed`: the window was until now."""
        if self._held:
            self._held -= 1
        if seconds > LONG or (not self._held and self._share is None):
            self._least = self._first
        # A window of roots that one long turn made late shrinks those to come once: larger ones say nothing of the size that is.
        if seconds > SLOW and self.rows > self._least and rows <= self.rows:
            self._change(max(self._least, self.rows // 2))
        elif closed and rows >= self.rows:
            if seconds < QUICK:
                self._change(min(self._most, self.rows * 2))
            elif seconds <= LONG and not self._held:
                self._try(seconds)

    def _change(self, rows: int) -> None:
        self.rows, self._share = rows, None
        self._took.clear()

    def _try(self, seconds: float) -> None:
        """Judge the size that is tried, and try the next one."""
        self._took.append(seconds)
        if len(self._took) < 2 * TRIED:
            return
        share, before = sorted(self._took[TRIED:])[TRIED // 2] / self.rows, self._share
        worth = before is None or share <= WORTH * before
        if worth and self.rows < self._most:
            self._change(min(self._most, self.rows * 2))
            self._share, self._least = share, self.rows
        else:
            self._change(self.rows if worth else max(self._first, self.rows // 2))
            self._least, self._held = self.rows, HELD
