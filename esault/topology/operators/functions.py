"""The functions behind `split`, `sample` and `lookup`, which are steps in the process of the unit before them."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["Branch", "Found", "Lookup", "Reread", "Sample"]


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


class Reread:
    """The function of a table, which is called again every so many seconds, or when a file has changed.

    It is asked at each tuple, so that nothing is read where nothing comes. What it raises later than at first is printed, once in a
    row, and the table before stays.
    """

    def __init__(
        self,
        read: Callable[[], Mapping[Any, Any]],
        refresh: float | str | os.PathLike[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._file = None if isinstance(refresh, (int, float)) else os.fspath(refresh)
        self._every = refresh if isinstance(refresh, (int, float)) else LOOKED_AT_EVERY
        self._clock = clock
        self._due = 0.0
        self._seen: Any = None
        self._table: Mapping[Any, Any] | None = None
        self._failing = False

    def __call__(self) -> Mapping[Any, Any]:
        table = self._table
        if table is None:
            self._seen = self._state()
            table = self._table = _mapping(self._read())
            self._due = self._clock() + self._every
        elif self._clock() >= self._due:
            table = self._again(table)
            self._due = self._clock() + self._every
        return table

    def _again(self, before: Mapping[Any, Any]) -> Mapping[Any, Any]:
        seen = self._state()
        if self._file is not None and seen == self._seen and not self._failing:
            return before
        self._seen = seen
        try:
            self._table = table = _mapping(self._read())
        except Exception as error:
            if not self._failing:
                print(
                    f"lookup: the table could not be read again, and stays as it was: {type(error).__name__}: {error}",
                    file=sys.stderr,
                )
            self._failing = True
            return before
        self._failing = False
        return table

    def _state(self) -> Any:
        """Return something that changes when the file is written or replaced; None: it is not there."""
        if self._file is None:
            return None
        try:
            found = os.stat(self._file)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


#: seconds between two looks at a file
LOOKED_AT_EVERY = 1.0


def _mapping(table: Any) -> Mapping[Any, Any]:
    if not isinstance(table, Mapping):
        raise TypeError(f"the function that gives the table returned {type(table).__name__}, and no mapping")
    return table


class Lookup:
    """(value, what `table` has under `of(value)`); a table that is a function is called once in each process, unless it is a Reread."""

    def __init__(self, table: Any, of: Callable[[Any], Any] | None) -> None:
        self._of = of
        self._table: Mapping[Any, Any] | None = table if isinstance(table, Mapping) else None
        self._read = table

    def __call__(self, value: Any) -> tuple[Any, Any]:
        table = self._table
        if table is None:
            table = _mapping(self._read())
            if type(self._read) is not Reread:
                self._table = table
        return value, table.get(value if self._of is None else self._of(value))


class Found(Lookup):
    """The same as a list of one, which is empty where the table has nothing."""

    def __call__(self, value: Any) -> Any:
        found = super().__call__(value)
        return () if found[1] is None else (found,)
