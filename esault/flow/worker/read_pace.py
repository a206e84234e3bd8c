"""The pace at which a spout is asked: at once while it gives what it can, after a moment where it has little.

A source that trickles has a tuple or two whenever it is asked. Asked all the time it brings forth a root for each of them, and a
root costs every sub-unit on its way as much as a hundred tuples do: on cores that are shared the tail of the latency doubles.
"""

from __future__ import annotations

__all__ = ["ReadPace"]

#: seconds until a spout that had nothing is asked again: at first, and at most; the first also goes for one that trickles
SHORTEST, LONGEST = 0.0001, 0.005
#: of so many reads of one that trickles, one is followed by another at once, to see whether it still does
PROBED = 16


class ReadPace:
    """A plain core: what was read goes in, the time of the next read comes out."""

    __slots__ = ("_before", "_nap", "_probing", "_reads", "_trickles", "at")

    def __init__(self) -> None:
        #: the next read, seconds since the epoch
        self.at = 0.0
        self._nap = SHORTEST
        self._trickles = False
        self._probing = False
        self._before = 0
        self._reads = 0

    @property
    def resting(self) -> bool:
        """True when the last read gave nothing."""
        return self._nap > SHORTEST

    def nothing(self, now: float, due: float | None = None) -> None:
        """Note a read that gave nothing; `due`: there is nothing before. One that is over says nothing: what was due did not come."""
        self._trickles, self._probing = True, False
        self.at = due if due is not None and due > now else now + self._nap
        self._nap = min(LONGEST, self._nap * 1.5)

    def some(self, now: float, rows: int, limit: int, due: float | None = None) -> None:
        """Note a read that gave `rows` of `limit` tuples; `due`: there are no others before."""
        self._nap = SHORTEST
        if due is not None:
            # As many as have come together by then: none is asked for alone.
            self.at = max(due, now + SHORTEST) if rows < limit else now
            return
        if not self._trickles:
            return
        if rows >= limit or (self._probing and rows >= self._before):
            # As many at once as after a pause: it has more than it gives at a time.
            self._trickles = self._probing = False
            return
        self._reads += 1
        self._probing, self._before = self._reads % PROBED == 0, rows
        if not self._probing:
            self.at = now + SHORTEST
