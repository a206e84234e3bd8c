"""Values that cannot be changed, and of which operators run the interpreter's own code."""

from __future__ import annotations

from collections.abc import Sequence
from operator import countOf
from typing import Any

__all__ = ["SCALARS", "all_scalars"]

SCALARS = frozenset((str, bytes, int, float, bool, type(None)))


def all_scalars(column: Sequence[Any]) -> bool:
    """Return whether all values of a column, which is not empty, are of these types and not of any derived from them."""
    kind = type(column[0])
    # Most columns are of one kind: to count that is quicker than to look each up, and needs no list.
    return (kind in SCALARS and countOf(map(type, column), kind) == len(column)) or SCALARS.issuperset(
        map(type, column)
    )
