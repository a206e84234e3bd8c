"""Arrays of NumPy and Arrow as columns of a table, without a look at single values where their type says that all fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from esault.payload.column import is_array
from esault.sinks.landing.arrow import arrow_type, to_array
from esault.sinks.landing.schema import Column

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["from_columns"]


def from_columns(owner: str, columns: Sequence[Column], keys: Any, values: Any) -> list[pa.Array] | None:
    """The table's columns, the first of which holds the keys; None where values must be looked at one by one.

    SinkError as `to_array`, for a list that is one of the two.
    """
    sources: list[Any] = [keys]
    found = _fields(values)
    if found is not None:
        if not found.keys() <= {column.name for column in columns[1:]}:
            return None
        sources += [found.get(column.name) for column in columns[1:]]
    elif len(columns) == 2 and is_array(values):
        sources.append(values)
    elif len(columns) > 1:
        return None
    arrays = []
    for column, source in zip(columns, sources):
        if source is None:
            made = _nulls(column, len(keys))
        elif is_array(source):
            made = _fitting(column, source)
        else:
            made = to_array(owner, column, source, keys)
        if made is None or (made.null_count and not column.nullable):
            return None
        arrays.append(made)
    return arrays


def _fields(values: Any) -> dict[str, Any] | None:
    """The columns of a RecordBatch or an array of structs by name; None for what is neither, or has rows that are null."""
    import pyarrow as pa

    if isinstance(values, pa.RecordBatch):
        return dict(zip(values.schema.names, values.columns))
    if isinstance(values, pa.StructArray) and not values.null_count:
        return {field.name: part for field, part in zip(values.type, values.flatten())}
    return None


def _nulls(column: Column, rows: int) -> pa.Array | None:
    import pyarrow as pa

    return pa.nulls(rows, arrow_type(column)) if column.nullable else None


def _fitting(column: Column, source: Any) -> pa.Array | None:
    return _of_arrow(column, source) if hasattr(source, "to_pylist") else _of_numpy(column, source)


def _of_arrow(column: Column, source: Any) -> pa.Array | None:
    import pyarrow as pa
    import pyarrow.types as t

    kind = source.type
    if t.is_dictionary(kind):
        source = source.dictionary_decode()
        kind = source.type
    fits = {
        "long": t.is_integer(kind) and not t.is_uint64(kind),
        "double": t.is_float32(kind) or t.is_float64(kind),
        "boolean": t.is_boolean(kind),
        "string": t.is_string(kind) or t.is_large_string(kind),
        "binary": t.is_binary(kind) or t.is_large_binary(kind),
        "timestamp": t.is_timestamp(kind) and kind.tz is not None,
        "date": t.is_date32(kind),
    }
    if not fits.get(column.type, False):
        return None
    try:
        return source.cast(arrow_type(column))
    except pa.ArrowInvalid:  # a moment too far away
        return None


def _of_numpy(column: Column, source: Any) -> pa.Array | None:
    import numpy as np
    import pyarrow as pa

    kind, size = source.dtype.kind, source.dtype.itemsize
    if column.type == "long" and (kind == "i" or (kind == "u" and size < 8)):
        data: Any = np.ascontiguousarray(source, np.int64)
    elif column.type == "double" and kind == "f":
        data = np.ascontiguousarray(source, np.float64)
    elif column.type == "boolean" and kind == "b":
        data = np.packbits(source, bitorder="little")
    else:
        return None
    # Not `pa.array`, which loads pandas wherever that is installed.
    return pa.Array.from_buffers(arrow_type(column), len(source), [None, pa.py_buffer(data)])
