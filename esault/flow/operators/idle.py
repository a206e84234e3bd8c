"""Finding idle elements: a sweep every so often (Zhan et al. 2017, the authors' code).

With one generation this is the paper's rule: a sweep removes what the last sweep flagged and nothing has used
since, and flags all the rest, so that an element lives between one and two periods after its last tuple. More
generations make the sweeps that much shorter and the life that much more exact.
"""

from __future__ import annotations

from collections.abc import Iterable

from esault.routing.ring import Name

__all__ = ["IdleSweep"]


class IdleSweep:
    """Says which names have had no tuple for `after` seconds (up to `after / generations` more)."""

    def __init__(self, after: float, now: float, generations: int = 1) -> None:
        self.after = after
        self._period = after / generations
        self._generations = generations
        self._next = now + self._period
        self._sweep = 0
        #: number of the last sweep before which a name was used; those flagged
        self._last: dict[Name, int] = {}

    def due(self, now: float) -> bool:
        """Return whether it is time for a sweep."""
        return now >= self._next

    @property
    def next_at(self) -> float:
        """Return the time at which the next sweep is due."""
        return self._next

    def sweep(self, now: float, names: Iterable[Name], used: set[Name]) -> list[Name]:
        """The names to remove. `used`: those with tuples since the last sweep; it is emptied."""
        self._sweep += 1
        self._next = max(self._next + self._period, now)
        last, idle = {}, []
        for name in names:
            if name in used or name not in self._last:
                # Used since the last sweep, or born since: flagged now.
                last[name] = self._sweep
            elif self._sweep - self._last[name] >= self._generations:
                idle.append(name)
            else:
                last[name] = self._last[name]
        self._last = last
        used.clear()
        return idle
