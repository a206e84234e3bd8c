"""Rows on their way from the engine to a Parquet part: first as Python lists, then as Arrow batches."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from copy import copy
from itertools import repeat
from typing import TYPE_CHECKING, Any

from esault.payload.column import PLAIN_TYPES, is_column, plain
from esault.sinks.landing.arrays import from_columns
from esault.sinks.landing.arrow import arrow_schema, constant, moments, parquet_bytes, to_array
from esault.sinks.landing.changelog import Changelog, stamps
from esault.sinks.landing.merge import newest_of_each
from esault.sinks.landing.schema import ADDED, UPSERT_ADDED, Schema
from esault.sinks.landing.values import spread_keys, unfold

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Buffer"]

#: rows that stay Python objects at most: they take several times the memory of an Arrow batch, and to make one the data loop stands still
_CHUNK = 4_096
#: rows of arrays that are not worth a batch of their own
_FEW = 256


class Buffer:
    """Takes rows, gives Parquet. `schema` begins with the key's column; ids, times and the run are kept if it ends with
    ADDED. With a `changelog` it keeps the newest row of each key, and `schema` ends with UPSERT_ADDED. A value that does
    not fit raises SinkError when its rows are made an Arrow batch, and again each time."""

    def __init__(self, owner: str, schema: Schema, run: str, changelog: Changelog | None = None) -> None:
        self._owner = owner
        self._changelog = changelog
        #: as the user has declared the columns
        self._declared = schema[: -len(UPSERT_ADDED)] if changelog is not None else schema
        if changelog is not None:
            schema = changelog.columns + UPSERT_ADDED
        self._run = run
        self._schema = schema
        self._added = schema[-len(ADDED) :] == ADDED
        self._columns = schema[: -len(ADDED)] if self._added else schema
        if changelog is not None:
            self._columns = changelog.columns
        #: whether a key may have several rows in the batches
        self._several = False
        self._names = [column.name for column in self._columns[1:]]
        self._keys: list[Any] = []
        self._values: list[Any] = []
        self._micros = array("q")
        #: the run's column, longer and longer: that of a batch is a part of it
        self._runs: pa.Array | None = None
        self._ids: list[str | None] = []
        self._batches: list[pa.RecordBatch] = []
        self._converted = 0
        #: bytes of the Arrow batches
        self.bytes = 0

    def add(self, keys: Any, values: Any, time: float, ids: Sequence[str] | None) -> None:
        """Take rows that share their time; keys and values may be arrays."""
        if any(type(column) not in PLAIN_TYPES and is_column(column) for column in (keys, values)):
            made = None
            if len(keys) >= _FEW and (self._changelog is None or not getattr(values, "null_count", 0)):
                columns = self._columns if self._changelog is None else self._declared
                made = from_columns(self._owner, columns, keys, values)
            if made is not None:
                self._convert()  # what came before stays before
                self._add_arrays(made, len(keys), time, ids)
                return
            keys, values = plain(keys), plain(values)
        self._keys.extend(keys)
        self._values.extend(values)
        if self._changelog is not None:
            self._micros += stamps(self._changelog.stamp(), len(keys))
        if self._added:
            self._micros += array("q", (round(time * 1e6),)) * len(keys)
            self._ids.extend(repeat(None, len(keys)) if ids is None else ids)
        if len(self._keys) >= _CHUNK:
            self._convert()

    def _add_arrays(self, arrays: list[pa.Array], rows: int, time: float, ids: Sequence[str] | None) -> None:
        import pyarrow as pa

        if self._changelog is not None:
            self._several = True
            flags = self._changelog.flags(arrays, rows)
            arrays += [moments(stamps(self._changelog.stamp(), rows)), flags]
        if self._added:
            named: Sequence[str | None] = [None] * rows if ids is None else ids
            arrays += [
                to_array(self._owner, ADDED[0], named, named),
                moments(array("q", (round(time * 1e6),)) * rows),
                self._run_column(rows),
            ]
        self._keep(pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(self._schema)))

    def _keep(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self.bytes += batch.nbytes
        self._converted += batch.num_rows

    def add_rows(self, rows: Sequence[tuple[Any, Any, float, str | None]]) -> None:
        """Take rows, each with key, value, time and id."""
        if not rows:
            return
        keys, values, times, ids = zip(*rows)
        self._keys.extend(keys)
        self._values.extend(values)
        if self._changelog is not None:
            self._micros += stamps(self._changelog.stamp(), len(rows))
        if self._added:
            self._micros.extend([round(time * 1e6) for time in times])
            self._ids.extend(ids)
        if len(self._keys) >= _CHUNK:
            self._convert()

    def __len__(self) -> int:
        return len(self._keys) + self._converted

    def _convert(self) -> None:
        """Make an Arrow batch of the lists; they stay as they are when a value does not fit."""
        import pyarrow as pa

        owner = self._owner
        if not self._keys:
            return
        if self._changelog is not None:
            self._convert_newest(self._changelog)
            return
        name = self._columns[0].name
        keys, values = spread_keys(owner, [name, *self._names], self._keys, self._values)
        arrays = [to_array(owner, self._columns[0], keys, keys)]
        cells = unfold(owner, name, self._names, values, keys)
        arrays += [to_array(owner, column, values, keys) for column, values in zip(self._columns[1:], cells)]
        if self._added:
            arrays += [
                to_array(owner, ADDED[0], self._ids, keys),
                moments(self._micros),
                self._run_column(len(keys)),
            ]
        self._keep(pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(self._schema)))
        self._keys, self._values, self._micros, self._ids = [], [], array("q"), []

    def _convert_newest(self, changelog: Changelog) -> None:
        """As `_convert`, of the newest row of each key."""
        import pyarrow as pa

        owner = self._owner
        keys, cells, micros, gone = changelog.cells(self._keys, self._values, self._micros)
        arrays = [to_array(owner, self._columns[0], keys, keys)]
        for declared, column, (values, nulls) in zip(self._declared[1:], self._columns[1:], cells):
            arrays.append(to_array(owner, column if nulls else declared, values, keys))
        arrays += [moments(micros), to_array(owner, UPSERT_ADDED[1], gone, keys)]
        self._several = self._several or bool(self._batches)
        self._keep(pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(self._schema)))
        self._keys, self._values, self._micros = [], [], array("q")

    def _run_column(self, rows: int) -> pa.Array:
        if self._runs is None or len(self._runs) < rows:
            self._runs = constant(self._run, rows)
        return self._runs[:rows]

    def table(self) -> pa.Table:
        """All rows; of a key the newest where there is a changelog. They stay until `clear`."""
        import pyarrow as pa

        self._convert()
        table = pa.Table.from_batches(self._batches, arrow_schema(self._schema))
        if self._changelog is not None and self._several:
            table = newest_of_each(table, self._changelog.key)
        return table

    def parquet(self) -> tuple[int, pa.Buffer]:
        """All rows as (their number, the bytes of a Parquet file). They stay until `clear`."""
        table = self.table()
        return table.num_rows, parquet_bytes(table)

    def take(self) -> Buffer:
        """Return a buffer of all rows so far, which no longer are in this one. Raises SinkError as `add`; then they are.

        They are Arrow batches by then: another thread can work on them without the interpreter.
        """
        self._convert()
        taken = copy(self)
        self.clear()
        return taken

    def clear(self) -> None:
        """Forget all rows."""
        self._keys, self._values, self._micros, self._ids = [], [], array("q"), []
        self._batches, self._converted = [], 0
        self._several = False
        self.bytes = 0
