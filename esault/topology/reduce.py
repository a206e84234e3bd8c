"""The bolt behind `stream.key_by(f).reduce(...)`: it keeps one total per key."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from esault.topology.bolt import Bolt

__all__ = ["Reduce"]

#: what nothing can change, so that all keys may begin with the same one: a copy takes longer than all else about a new key
_FIXED = frozenset((int, float, str, bytes, bool, type(None)))


class Reduce(Bolt[Any, Any, Any, Any]):
    """Its `total` starts as a copy of `initial`; each value makes a new one, which is emitted under the key.

    `function(total, value)` returns the new total and leaves the old one as it is, since that was emitted.
    """

    # Slots, so that an object is small: there may be millions, and its state is the total alone.
    __slots__ = ("function", "total")

    def __init__(self, function: Callable[[Any, Any], Any], initial: Any) -> None:
        self.function = function
        kind = type(initial)
        fixed = kind in _FIXED or (kind is tuple and _FIXED.issuperset(map(type, initial)))
        self.total = initial if fixed else copy.deepcopy(initial)

    def process(self, key: Any, value: Any) -> None:
        """Take one value into the total."""
        self.total = total = self.function(self.total, value)
        self.emit(key, total)

    def __getstate__(self) -> dict[str, Any]:
        return {"total": self.total}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.total = state["total"]
