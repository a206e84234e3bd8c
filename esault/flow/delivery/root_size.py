"""The number of tuples that a spout is asked for at a time: small roots while they are on their way for long, large ones where each is quick.

A root costs the same few frames and acks whether it has ten tuples or a thousand. Where the window is closed and yet each root
comes back at once, that cost is what limits the stream, and larger roots divide it among more tuples (twice the throughput
of workload B). Where roots take long, larger ones would only make the queue in front of user code longer.
"""

from __future__ import annotations

__all__ = ["FIRST", "RootSize"]

#: tuples of the first roots, and the fewest that are asked for
FIRST = 128
#: seconds from open to processed: below, roots may grow; above, they shrink
QUICK, SLOW = 0.01, 0.02


class RootSize:
    """Doubles once a round trip at most, since only a root of the present size can make it grow."""

    def __init__(self, most: int, tracked: bool) -> None:
        """`most`: the setting `root_rows`. Where nothing is acked nothing tells how long roots take: they are large at once."""
        self._most = most
        self._least = min(FIRST, most)
        #: tuples to ask for
        self.rows = self._least if tracked else most

    def arrays(self, most: int) -> None:
        """The spout reads arrays, whose tuples cost little beside what the root costs: roots may be as large as this."""
        self._most = most

    def processed(self, seconds: float, rows: int, closed: bool) -> None:
        """A root of so many tuples was processed so long after it was opened; `closed`: the window was until now."""
        if seconds > SLOW:
            self.rows = max(self._least, self.rows // 2)
        elif closed and seconds < QUICK and rows >= self.rows:
            self.rows = min(self._most, self.rows * 2)
