"""The bound on the keys whose objects a sub-unit holds in memory: beyond it the states of those that came first go to a disk.

A bolt sets it by `keys_in_memory`; where a host runs short of memory the driver sets it, to half of what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from logging import Logger

from esault.errors import StateError
from esault.flow.operators.elements import Elements
from esault.flow.operators.packed_states import PackedStates
from esault.flow.operators.user_error import UserError
from esault.routing.ring import Name

__all__ = ["LEAST", "MemoryBound"]

#: the bound is never set lower where memory runs short
LEAST = 64
#: elements that go at once, beside as many as have come
SLICE = 64
#: names that are known to be used, to a key in memory, at most
USED = 2
#: seconds until states are written again that could not be
AGAIN = 5.0


class MemoryBound:
    """A bound on `elements`, which nothing is asked of before `set`."""

    def __init__(self, unit: str, elements: Elements, states: Callable[[], PackedStates], logger: Logger) -> None:
        self._unit = unit
        self._elements = elements
        self._states = states
        self._logger = logger
        #: keys in memory at most; None: any number
        self.most: int | None = None
        #: names that came since they were passed over last
        self._used: set[Name] = set()
        self._again_at = float("-inf")
        self._told = False

    @property
    def away(self) -> int:
        """Return how many keys have their states on disk."""
        return 0 if self.most is None else self._elements.away

    def set(self, most: int) -> None:
        """Hold so many keys in memory at most from now on."""
        if self.most is None:
            self._elements.put_states_in(self._states())
        self.most = most

    def halve(self) -> None:
        """Hold half of the keys that are in memory now; nothing while more are there than may be, from the time before."""
        if self.most is None or self._elements.here <= self.most:
            self.set(max(LEAST, self._elements.here // 2))

    def use(self, names: Collection[Name]) -> None:
        """Note whose tuples were processed. Call it only where there is a bound."""
        assert self.most is not None
        if len(self._used) > USED * self.most:  # names of keys that have expired or moved, for the most part
            self._used.clear()
        self._used.update(names)

    def keep(self, now: float, came: int = 0) -> bool:
        """Put some of those away that are too many, `came` and a few more; whether there are more. Raises UserError."""
        if self.most is None or now < self._again_at:
            return False
        excess = self._elements.here - self.most
        if excess <= 0:
            return False
        try:
            self._elements.spill(min(excess, came + SLICE), self._used)
        except StateError as error:
            raise UserError(str(error)) from error
        except OSError as error:
            self._again_at = now + AGAIN
            if not self._told:
                self._told = True
                self._logger.error("unit %r: %s. They stay in memory; it is tried again", self._unit, error)
            return False
        return self._elements.here > self.most
