"""Keys of a unit's tuples, counted as long as they are few: a key is in one sub-unit, so that more than keys have nothing to do."""

from __future__ import annotations

from collections import Counter

from esault.elasticity.view import UnitView

__all__ = ["FewKeys"]

#: keys that are few
FEW = 64
#: sampled tuples from which it is believed that there are no others
SAMPLED = 10


class FewKeys:
    """Of one unit; remembers all keys that it has had, by their places on the ring, unless they are many."""

    def __init__(self) -> None:
        self._seen: set[int] | None = set()
        #: it is believed that there are no others, until one comes: a change of the unit has samples taken anew
        self._all = False

    def count(self, unit: UnitView) -> int | None:
        """Return how many there are, as of the samples of this look and those before; None where there may be any number.

        A place that is sampled once tells of others that were not sampled (Good 1953: their share is about that of such places).
        """
        seen = self._seen
        if seen is None or unit.plan.objects != "key" or unit.plan.in_parts:
            return None
        loads, before = [sample.key_load for sample in unit.samples], len(seen)
        for load in loads:
            seen.update(load.points)
        if len(seen) > FEW:
            self._seen = None
            return None
        once = any(1 in Counter(load.points).values() for load in loads)
        sampled = sum(load.size for load in loads) >= SAMPLED
        self._all = (sampled and not once) or (self._all and len(seen) == before)
        return len(seen) if self._all else None
