"""Tuples that are at hand: in a list, or made by a function."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, TypeVar

from esault.errors import SourceError, TopologyError
from esault.topology.context import Context
from esault.topology.spout import EndOfStream, Spout

__all__ = ["Items"]

K = TypeVar("K")
V = TypeVar("V")


class Items(Spout[K, V]):
    """Offers (key, value) pairs: those of a list, or of what a function without arguments returns.

    `repeat` is how many times over, None: for ever. A function is called anew each time, in the process that reads,
    and must give the same pairs each time: then a position is a number of pairs, and after a restart the same ones
    come again. With `parallelism=n` the readers take turns pair by pair.
    """

    delivery_guarantee: ClassVar[str] = "each pair counts once: it is made again from the checkpoint"
    parallel: ClassVar[bool] = True

    def __init__(
        self, rows: Sequence[tuple[K, V]] | Callable[[], Iterable[tuple[K, V]]], repeat: int | None = 1
    ) -> None:
        given: object = rows
        if isinstance(given, Mapping):
            raise TopologyError("Items: a dict is not a list of pairs; write Items(list(pairs.items()))")
        if isinstance(given, (str, bytes)) or not (callable(given) or isinstance(given, Sequence)):
            hint = "; what can be iterated only once must be made by a function" if isinstance(given, Iterable) else ""
            raise TopologyError(
                f"Items: {type(given).__name__} is neither a list of (key, value) pairs nor a function without "
                f"arguments that returns one{hint}"
            )
        if repeat is not None and (not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 1):
            raise TopologyError(f"Items: repeat={repeat!r}: write how many times, at least 1, or None for ever")
        self._rows = rows
        self.seeks_by_reading = callable(rows)
        self._repeat = repeat
        self._part, self._parts = 0, 1
        #: pairs read, passes completed, pairs read in the present pass
        self._read = self._passes = self._in_pass = 0
        self._iterator: Iterator[tuple[K, V]] | None = None
        #: what a function made: a generator may hold files, and is closed with the spout
        self._made: Iterator[tuple[K, V]] | None = None

    def check(self) -> None:
        """Raises SourceError where a list holds something that is no pair."""
        if callable(self._rows):
            return
        for index, row in enumerate(self._rows):
            if not isinstance(row, (tuple, list)) or len(row) != 2:
                raise SourceError(f"Items: row {index} is {reprlib.repr(row)}; write each row as (key, value)")

    def open(self, context: Context) -> None:
        """Take part `context.part`."""
        self.context = context
        self._part, self._parts = context.part, context.parts

    def read(self, limit: int) -> list[tuple[K, V]]:
        """Up to `limit` pairs."""
        if limit < 1:
            return []
        rows = self._take(limit)
        if not rows:
            raise EndOfStream
        return rows

    def position(self) -> int:
        """Return the number of pairs that were read."""
        return self._read

    def seek(self, position: Any) -> None:
        """Pass over so many pairs."""
        left = int(position)
        size = self._size()
        if size and (self._repeat is None or left <= size * self._repeat):
            self._passes, left = divmod(left, size)
            self._read = self._passes * size
        while left:
            passed = len(self._take(min(left, 10_000)))
            if not passed:
                raise SourceError(
                    f"Items: an earlier run has read {position} pairs, and now there are only {self._read}; "
                    "give the same ones, or start anew (--restart)"
                )
            left -= passed

    def progress(self) -> tuple[float, float] | None:
        """Pairs read and pairs in all; None where a function makes them, or they never end."""
        size = self._size()
        return None if size is None or self._repeat is None else (float(self._read), float(size * self._repeat))

    def _size(self) -> int | None:
        """Return the number of pairs of a list that are this part's, once over."""
        return None if callable(self._rows) else len(range(self._part, len(self._rows), self._parts))

    def _take(self, limit: int) -> list[tuple[K, V]]:
        """Up to `limit` pairs of one pass; none: there are no more."""
        while self._passes != self._repeat:
            if self._iterator is None:
                self._iterator = islice(self._begin(), self._part, None, self._parts)
            rows = list(islice(self._iterator, limit))
            if rows:
                self._read += len(rows)
                self._in_pass += len(rows)
                return rows
            if not self._in_pass:
                break  # there is nothing to repeat
            self._iterator = None
            self._passes, self._in_pass = self._passes + 1, 0
        return []

    def _begin(self) -> Iterator[tuple[K, V]]:
        if not callable(self._rows):
            return iter(self._rows)
        made = self._rows()
        if not isinstance(made, Iterable):
            raise SourceError(f"Items: the function returned {reprlib.repr(made)}; it must return (key, value) pairs")
        self._made = iter(made)
        return self._made

    def close(self) -> None:
        """Close the generator that the function returned, so that its `with` and `finally` end here."""
        made, self._made, self._iterator = self._made, None, None
        if isinstance(made, Generator):
            made.close()
