"""Rows of landed tables put together: of each primary key the newest, of rows that a replay repeated the first.

pyarrow does it, in memory, and says nothing of where the rows come from or go to.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from esault.errors import SinkError
from esault.sinks.landing.arrow import arrow_schema, conform
from esault.sinks.landing.entry import Part
from esault.sinks.landing.part_file import part_file
from esault.sinks.landing.schema import ADDED, UPSERT_ADDED, Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["codes", "first_of_each", "newest_of_each", "read_parts", "there"]

_UPDATED, _DELETED = (column.name for column in UPSERT_ADDED)


def read_parts(folder: str, parts: Sequence[Part], schema: Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of parts with the columns of `schema`, or those of them that are named. SinkError: one cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = arrow_schema(
        tuple(replace(column, nullable=True) for column in schema if columns is None or column.name in columns)
    )
    batches: list[Any] = []
    for part in parts:
        path = os.path.join(folder, part.path)
        try:
            with part_file(path) as opened, pq.ParquetFile(opened) as file:
                there = set(file.schema_arrow.names)
                table = file.read(columns=[name for name in wanted.names if name in there])
        except FileNotFoundError:
            raise SinkError(
                f"{path} is gone: the table was compacted or replaced since, and vacuum removed it. Read the table anew, "
                "without version= or with a newer one"
            ) from None
        except (OSError, pa.ArrowException) as error:
            raise SinkError(
                f"{path} cannot be read ({error}); restore it from a backup, or write the table anew"
            ) from None
        if table.num_rows != part.rows:
            raise SinkError(f"{path} has {table.num_rows} rows, and the log says {part.rows}: the file was changed")
        batches += [conform(batch, wanted, path) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, wanted)


def newest_of_each(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """The newest row of each key by `_updated`, deletions among them; of two that are as new the one behind."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = table.num_rows
    if rows < 2:
        return table
    numbers = codes(table, key)
    if pc.max(numbers).as_py() == rows - 1:
        return table  # as many keys as rows
    at = table[_UPDATED].cast(pa.int64()).combine_chunks()
    ranked = pa.RecordBatch.from_arrays([numbers, at, _numbers(rows)], ["key", "at", "row"])
    order = pc.sort_indices(ranked, sort_keys=[(name, "ascending") for name in ranked.schema.names])
    sorted_codes = numbers.take(order)
    ends = pc.not_equal(sorted_codes.slice(0, rows - 1), sorted_codes.slice(1))
    last = pa.concat_arrays([order.slice(0, rows - 1).filter(ends), order.slice(rows - 1)])
    return table.take(last)


def codes(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """A number for each row, from 0: the same where all of these columns are equal."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # not `group_by`, which loads pandas wherever that is installed
    numbers = _codes(table[columns[0]])
    for name in columns[1:]:
        more = _codes(table[name])
        width = pa.scalar(pc.max(more).as_py() + 1, pa.int64())
        numbers = _codes(pc.add(pc.multiply(numbers, width), more))
    return numbers


def _codes(values: Any) -> pa.Array:
    """A number for each value, the same for equal ones, from 0 without holes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # as one: of many chunks each would have a dictionary of its own
    whole = values if isinstance(values, pa.Array) else values.combine_chunks()
    return pc.dictionary_encode(whole, null_encoding="encode").indices.cast(pa.int64())


def there(table: pa.Table, after: int | None = None) -> pa.Table:
    """The rows that are no deletions; with `after`, also the deletions that are newer (microseconds since the epoch)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pc.invert(table[_DELETED])
    if after is not None:
        wanted = pc.or_(wanted, pc.greater(table[_UPDATED], pa.scalar(after, table[_UPDATED].type)))
    return table if pc.all(wanted, min_count=0).as_py() else table.filter(wanted)


def first_of_each(table: pa.Table) -> pa.Table:
    """The first row of each `_run` and `_id`, and all rows without an id, in their order; as it is without such columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not {column.name for column in ADDED} <= set(table.schema.names):
        return table
    numbers = _numbers(table.num_rows)
    ids = table["_id"]
    marked = pa.table({"run": table["_run"], "id": ids, "row": numbers}).filter(pc.is_valid(ids))
    first = marked.group_by(["run", "id"]).aggregate([("row", "min")])["row_min"]
    if len(first) == marked.num_rows:
        return table
    without = pa.chunked_array([pc.filter(numbers, pc.is_null(ids.combine_chunks()))])
    wanted = pa.chunked_array([*first.chunks, *without.chunks], pa.int64())
    return table.take(wanted.take(pc.sort_indices(wanted)))


def _numbers(rows: int) -> pa.Array:
    import pyarrow as pa

    # not `pa.array`, which loads pandas wherever that is installed
    return pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(array("q", range(rows)))])
