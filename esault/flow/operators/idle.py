"""Finding idle elements: a sweep every so often (Zhan et al. 2017, the authors' code).

With one generation this is the paper's rule: a sweep removes what the last sweep flagged and nothing has used
since, and flags all the rest, so that an element lives between one and two periods after its last tuple. More
generations make the sweeps that much shorter and the life that much more exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from esault.routing.ring import Name

__all__ = ["IdleSweep"]

#: names looked at in a step
SLICE = 64


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
        self._used: set[Name] = set()

    def use(self, names: set[Name]) -> None:
        """Note whose tuples came since this was called last; the set is not changed any more."""
        self._used = self._used | names if self._used else names

    def due(self, now: float) -> bool:
        """Return whether it is time for a sweep."""
        return now >= self._next

    @property
    def next_at(self) -> float:
        """Return the time at which the next sweep is due."""
        return self._next

    def sweep(self, now: float, names: Iterable[Name]) -> Iterator[list[Name]]:
        """Say which to remove, some names a step: millions are not looked at at once.

        Between two steps tuples may come for a name that is said next: the caller looks.
        """
        self._sweep += 1
        self._next = max(self._next + self._period, now)
        used, self._used = self._used, set()
        flagged, self._last = self._last, {}
        names, last = iter(names), self._last
        while some := list(islice(names, SLICE)):
            idle = []
            for name in some:
                at = flagged.pop(name, None)
                if at is None or name in used:
                    # Used since the last sweep, or born since: flagged now.
                    last[name] = self._sweep
                elif self._sweep - at >= self._generations:
                    idle.append(name)
                else:
                    last[name] = at
            yield idle
