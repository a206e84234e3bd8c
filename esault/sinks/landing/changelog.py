"""Rows of a table with a primary key, on their way into a part: of each key the newest, with what says which that is.

Each row gets in `_updated` when it was written: microseconds of the engine's clock, one more for each batch at least,
and always more than what the table's log shows. A key's rows come from one sub-unit at a time. When a key moves, the
next owner writes after the one before, so its rows are newer, whichever of the two commits first, and after a crash
too. That is why parts may be committed and merged in any order.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

from esault.errors import SinkError
from esault.sinks.landing.schema import Schema
from esault.sinks.landing.values import fitting, short, spread_keys, unfold

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Changelog"]


class Changelog:
    """The rules of one sink: `key` are the columns of the primary key, `deleted` one that says a row is gone."""

    def __init__(
        self,
        owner: str,
        columns: Schema,
        key: tuple[str, ...],
        deleted: str | None,
        now: Callable[[], float],
        newest: int = 0,
    ) -> None:
        self.key = key
        self.columns = tuple(column if column.name in key else replace(column, nullable=True) for column in columns)
        self._owner = owner
        self._declared = columns
        self._deleted = deleted
        self._now = now
        #: the greatest stamp that was given, and the greatest that was seen: two, for a commit in a thread of its own sees some
        self._given, self._seen = newest, 0
        names = [column.name for column in columns]
        self._names = names[1:]
        self._places = [names.index(name) for name in key]
        self._flag = names.index(deleted) if deleted is not None else None
        #: the tuple's key is all of the primary key: its last row can be told before values are looked at
        self._by_key = self._places == [0]

    def stamp(self) -> int:
        """Return what says when the rows of a batch were written."""
        self._given = max(round(self._now() * 1e6), self.newest + 1)
        return self._given

    @property
    def newest(self) -> int:
        """Return the greatest stamp that was given or seen."""
        return max(self._given, self._seen)

    def seen(self, newest: int) -> None:
        """The table holds rows that are so new: those to come are newer. From one thread at a time."""
        self._seen = max(self._seen, newest)

    def cells(
        self, keys: list[Any], values: list[Any], micros: array[int]
    ) -> tuple[list[Any], list[tuple[Sequence[Any], bool]], array[int], list[bool]]:
        """Return keys, the other columns (each with whether it may hold nulls that were not declared), stamps and
        which rows are deletions, of the newest row of each key. SinkError for what does not fit."""
        gone = [value is None for value in values]
        spreads = type(keys[0]) is tuple
        if spreads:
            self._check_gone(keys, gone, list(range(len(keys[0]))))
            names = [column.name for column in self._declared]
            keys, values = map(list, spread_keys(self._owner, names, keys, values))
        keys = self._fit(0, keys, keys)
        if self._by_key:
            last = dict(zip(keys, range(len(keys))))
            if len(last) < len(keys):
                places = list(last.values())
                keys, values = list(last), [values[place] for place in places]
                micros = array("q", [micros[place] for place in places])
                gone = [gone[place] for place in places]
        cells = self._spread(keys, values, gone) if True in gone and not spreads else self._unfold(keys, values)
        flagged = self._flag
        if flagged is not None:
            said = keys if flagged == 0 else cells[flagged - 1]
            gone = [before or bool(now) for before, now in zip(gone, said)]
        if True in gone:
            self._check_nulls(keys, cells, gone)
        if not self._by_key:
            every: list[Any] = [keys, *cells]
            for place in self._places:
                every[place] = self._fit(place, every[place], keys)
            try:
                last = dict(zip(zip(*(every[place] for place in self._places)), range(len(keys))))
            except TypeError:  # no value of a column; to be said when it is made one
                last = {}
            if last and len(last) < len(keys):
                places = list(last.values())
                keys, *rest = ([column[place] for place in places] for column in every)
                cells = list(rest)
                micros, gone = array("q", [micros[place] for place in places]), [gone[place] for place in places]
        return keys, [(column, True in gone) for column in cells], micros, gone

    def _fit(self, place: int, values: Any, keys: Sequence[Any]) -> Any:
        """Return the values of a column of the primary key as it holds them, if they are of several types: 1 and True are equal to Python,
        and one of them would go unseen. SinkError for what does not fit."""
        if len(set(map(type, values))) < 2:
            return values
        return fitting(self._owner, self.columns[place], values, keys)

    def _unfold(self, keys: Sequence[Any], values: Sequence[Any]) -> list[Sequence[Any]]:
        return unfold(self._owner, self._declared[0].name, self._names, values, keys)

    def _check_gone(self, keys: Sequence[Any], gone: Sequence[bool], places: Sequence[int]) -> None:
        """A value None deletes the row of a key, where the primary key is these columns, which the key fills. Raises SinkError."""
        if True in gone and sorted(self._places) != places:
            key = next(key for key, none in zip(keys, gone) if none)
            raise SinkError(
                f"{self._owner}: the value of key {short(key)} is None, which deletes the row of a key, and the primary "
                f"key ({', '.join(self.key)}) is not the tuple's key alone; name a bool column that says so: "
                'deleted="..."'
            )

    def _check_nulls(self, keys: Sequence[Any], cells: Sequence[Sequence[Any]], gone: Sequence[bool]) -> None:
        """Raise SinkError for a null that was not declared: beside a row that is gone its column may hold nulls."""
        for declared, column in zip(self._declared[1:], cells):
            if not declared.nullable:
                for key, cell, none in zip(keys, column, gone):
                    if cell is None and not none:
                        fitting(self._owner, declared, [cell], [key])

    def _spread(self, keys: Sequence[Any], values: Sequence[Any], gone: Sequence[bool]) -> list[Sequence[Any]]:
        """The columns where some values are None: nulls stand in those rows."""
        self._check_gone(keys, gone, [0])
        there = [(key, value) for key, value, none in zip(keys, values, gone) if not none]
        if not there:
            return [[None] * len(keys) for _ in self._names]
        found = self._unfold([key for key, _ in there], [value for _, value in there])
        spread: list[Sequence[Any]] = []
        for column in found:
            cells = iter(column)
            spread.append([None if none else next(cells) for none in gone])
        return spread

    def flags(self, arrays: Sequence[pa.Array], rows: int) -> pa.Array:
        """Return which rows of arrays are deletions."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._flag is not None:
            return pc.fill_null(arrays[self._flag], False)
        return pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(bytes((rows + 7) // 8))])


def stamps(stamp: int, rows: int) -> array[int]:
    """Return the stamp, for each row."""
    return array("q", repeat(stamp, rows))
