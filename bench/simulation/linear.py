"""The check that a history of operations on one register is linearizable: that one order of them explains all that was read.

Wing and Gong's search with Lowe's memory of what was tried: an operation may be the next one if no other one that is left had returned
before it was invoked; each must take effect between its invocation and its response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["Operation", "explained"]


class Operation(NamedTuple):
    """A write of a value, or a read that was answered with one."""

    invoked: float
    returned: float
    writes: bool
    value: Any


def explained(history: Sequence[Operation], initial: Any) -> bool:
    """Return whether some order of the operations explains all values that were read, from this value on."""
    operations = sorted(history)
    count = len(operations)
    #: (all before this one are done, those behind it that are done, the value): nothing came of it, or it is yet to be tried
    tried: set[tuple[int, frozenset[int], Any]] = set()
    stack: list[tuple[int, frozenset[int], Any]] = [(0, frozenset(), initial)]
    while stack:
        first, done, value = here = stack.pop()
        if here in tried:
            continue
        tried.add(here)
        if first == count:
            return True
        until = operations[first].returned
        for i in range(first, count):
            each = operations[i]
            if each.invoked > until:
                break
            if i in done:
                continue
            until = min(until, each.returned)
            if not each.writes and each.value != value:
                continue
            after, rest = first, done | {i}
            while after in rest:
                rest = rest - {after}
                after += 1
            stack.append((after, rest, each.value if each.writes else value))
    return False
