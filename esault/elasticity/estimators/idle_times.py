"""The time to keep a sub-unit that is not needed: the ski rental problem, with what earlier waits have taught.

Keeping costs its seconds; stopping it costs `change` (worker-seconds that a stop and a later start are worth). Without a history
the best rule waits as long as a change costs, and never pays more than twice what a prophet would (Karlin et al., 1988). With one,
the wait is chosen that would have cost least over the idle times seen: those of the sub-unit's own rank and of the ranks
about it, as the third of twelve is not needed in long valleys and the twelfth between any two peaks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from itertools import accumulate

__all__ = ["LEAST", "IdleTimes"]

#: seconds that a sub-unit which is not needed is kept at least
LEAST = 1.5
#: idle times that are remembered, and from how many on they decide
KEPT, ENOUGH = 192, 4
#: ranks as far as this from one's own are asked, the nearest first, until so many idle times are known
NEAR, SURE = 2, 12


class IdleTimes:
    """Idle times of one unit's sub-units, by their rank: the n-th is needed when n are."""

    def __init__(self, change: float) -> None:
        self.change = change
        self._ended: deque[tuple[int, float]] = deque(maxlen=KEPT)
        #: rank -> when it was needed last
        self._needed_at: dict[int, float] = {}

    def needed(self, count: int, width: int, now: float) -> None:
        """So many of `width` are needed now."""
        for rank in range(1, max(width, count) + 1):
            before = self._needed_at.get(rank)
            if rank <= count:
                if before is not None and now - before > 1.0:
                    self._ended.append((rank, now - before))
                self._needed_at[rank] = now
            elif before is None:
                self._needed_at[rank] = now

    def unknown(self, width: int, now: float) -> None:
        """Reset: it is unknown how many of `width` are needed now. Their idle times begin anew, and nothing is learnt."""
        self._needed_at.update(dict.fromkeys(range(1, width + 1), now))

    def idle(self, rank: int, now: float) -> float:
        """Seconds for which this one has not been needed."""
        return now - self._needed_at.get(rank, now)

    def snapshot(self) -> list[tuple[int, float]]:
        """Return the idle times that are remembered: (rank, seconds)."""
        return [(rank, round(seconds, 2)) for rank, seconds in self._ended]

    def recall(self, ended: Iterable[tuple[int, float]]) -> None:
        """Remember idle times of an earlier run. Raises TypeError, ValueError for another thing."""
        self._ended.extend((int(rank), float(seconds)) for rank, seconds in ended)

    def patience(self, rank: int) -> float:
        """Seconds to wait before this one is stopped when it is not needed, `LEAST` at least."""
        return self._least_cost(self._near(rank))

    def _near(self, rank: int) -> list[float]:
        """Idle times of the ranks about this one; where those are few, of all."""
        for apart in range(NEAR + 1):
            near = [seconds for other, seconds in self._ended if abs(other - rank) <= apart]
            if len(near) >= SURE:
                return near
        return [seconds for _, seconds in self._ended]

    def _least_cost(self, ended: list[float]) -> float:
        """The wait that would have cost least; the shortest of several."""
        if len(ended) < ENOUGH:
            return max(LEAST, self.change)
        ended = sorted(ended)
        sums = list(accumulate(ended, initial=0.0))

        def cost(wait: float) -> float:
            kept = bisect_right(ended, wait)
            return sums[kept] + (len(ended) - kept) * (wait + self.change)

        return min(sorted([LEAST, *(d for d in (self.change, *ended) if LEAST < d < 4 * self.change)]), key=cost)
