"""How long to keep a sub-unit that is not needed: the ski rental problem, with what earlier waits have taught.

Keeping costs its seconds; stopping it costs `change` (worker-seconds that a stop and a later start are worth). Without a history
the best rule waits as long as a change costs, and never pays more than twice what a prophet would (Karlin et al., 1988). With one,
the wait is chosen that would have cost least over the idle times seen.
"""

from __future__ import annotations

from collections import deque

__all__ = ["IdleTimes"]

#: idle times that are remembered, and from how many on they decide
KEPT, ENOUGH = 48, 4


class IdleTimes:
    """Idle times of one unit's sub-units, by their rank: the n-th is needed when n are."""

    def __init__(self, change: float) -> None:
        self.change = change
        self._ended: deque[float] = deque(maxlen=KEPT)
        #: rank -> when it was needed last
        self._needed_at: dict[int, float] = {}

    def needed(self, count: int, width: int, now: float) -> None:
        """So many of `width` are needed now."""
        for rank in range(1, max(width, count) + 1):
            before = self._needed_at.get(rank)
            if rank <= count:
                if before is not None and now - before > 1.0:
                    self._ended.append(now - before)
                self._needed_at[rank] = now
            elif before is None:
                self._needed_at[rank] = now

    def unknown(self, width: int, now: float) -> None:
        """Nobody can tell how many of `width` are needed now: their idle times begin anew, and nothing is learnt."""
        self._needed_at.update(dict.fromkeys(range(1, width + 1), now))

    def idle(self, rank: int, now: float) -> float:
        """Seconds for which this one has not been needed."""
        return now - self._needed_at.get(rank, now)

    @property
    def patience(self) -> float:
        """Seconds to wait before one that is not needed is stopped."""
        if len(self._ended) < ENOUGH:
            return self.change
        ended = list(self._ended)
        choices = [0.0, self.change, *(d for d in ended if d < 4 * self.change)]

        def cost(wait: float) -> float:
            return sum(d if d <= wait else wait + self.change for d in ended)

        return min(sorted(choices), key=cost)
