"""The functions behind `split`, `sample` and `lookup`, which are steps in the process of the unit before them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["Branch", "Found", "Lookup", "Sample"]


class Branch:
    """True for a value that `chosen` is the first of `predicates` to hold of; len(predicates): that none does."""

    def __init__(self, predicates: Sequence[Callable[[Any], object]], chosen: int) -> None:
        self._before = tuple(predicates[:chosen])
        self._own = predicates[chosen] if chosen < len(predicates) else None

    def __call__(self, value: Any) -> bool:
        for predicate in self._before:
            if predicate(value):
                return False
        return self._own is None or bool(self._own(value))


class Sample:
    """True for a share of what it is called with, by chance; the same for each run in one process with a seed."""

    def __init__(self, fraction: float, seed: int | None) -> None:
        self._fraction = fraction
        # The module's own generator begins anew in each process that is forked; one with a seed is to be the same in all.
        self._next = random.random if seed is None else random.Random(seed).random

    def __call__(self, value: Any) -> bool:
        return self._next() < self._fraction


class Lookup:
    """(value, what `table` has under `of(value)`); a table that is a function is called once in each process."""

    def __init__(self, table: Any, of: Callable[[Any], Any] | None) -> None:
        self._of = of
        self._table: Mapping[Any, Any] | None = table if isinstance(table, Mapping) else None
        self._read = table

    def __call__(self, value: Any) -> tuple[Any, Any]:
        table = self._table
        if table is None:
            table = self._read()
            if not isinstance(table, Mapping):
                raise TypeError(f"the function that gives the table returned {type(table).__name__}, and no mapping")
            self._table = table
        return value, table.get(value if self._of is None else self._of(value))


class Found(Lookup):
    """The same as a list of one, which is empty where the table has nothing."""

    def __call__(self, value: Any) -> Any:
        found = super().__call__(value)
        return () if found[1] is None else (found,)
