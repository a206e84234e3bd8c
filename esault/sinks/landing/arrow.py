"""From Python values to Arrow arrays and Parquet bytes. Imports pyarrow when called, never before.

Arrays are put together from their buffers (the layout is the Arrow columnar format's). `pyarrow.array`, the usual way,
imports pandas wherever that is installed: 50 MB in each process that writes a table.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from esault.errors import SinkError
from esault.payload.blas_spin import short_spin
from esault.sinks.landing.schema import Column, Schema
from esault.sinks.landing.values import EXACT, fitting

if TYPE_CHECKING:
    import pyarrow as pa

    _Bytes = bytes | array[int] | array[float]

__all__ = ["arrow_schema", "arrow_type", "conform", "constant", "load", "moments", "parquet_bytes", "to_array"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
#: characters of one column of a batch, of at most 4 bytes each: offsets have 31 bits
_TEXT_LIMIT = 2**29
#: between texts while they are one; a text that holds it goes the slow way
_BETWEEN = "\x1f"


def _bits(values: Iterable[Any]) -> bytes:
    """One bit per value, the lowest first."""
    text = "".join(["1" if value else "0" for value in values])
    return int(text[::-1] or "0", 2).to_bytes((len(text) + 7) // 8, "little")


def _offsets(lengths: Iterable[int]) -> array[int]:
    return array("i", accumulate(lengths, initial=0))


def _texts(values: Sequence[str]) -> list[_Bytes]:
    data = "".join(values).encode()
    # as many bytes as characters: then that holds for each of them
    ascii_only = len(data) == sum(map(len, values))
    return [_offsets(map(len, values) if ascii_only else [len(value.encode()) for value in values]), data]


def _plain_texts(values: Sequence[Any]) -> pa.Array | None:
    """Strings as an array, in half the time: joined here, cut up by Arrow. None where something is no string, holds the
    mark between them, or all together is too long."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        text = _BETWEEN.join(values)
    except TypeError:
        return None
    if len(text) >= _TEXT_LIMIT or text.count(_BETWEEN) != len(values) - 1:
        return None
    data = text.encode()
    whole = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(array("i", [0, len(data)])), pa.py_buffer(data)])
    return pc.split_pattern(whole, _BETWEEN).values


def _scaled(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)) or "0")
    shift = int(exponent) + 18
    number = number * int(10**shift) if shift >= 0 else number // int(10**-shift)
    return (-number if sign else number).to_bytes(16, "little", signed=True)


#: per column type: what stands for null, and the buffers after the one that says which values are null
_PACK: dict[str, tuple[Any, Callable[[Sequence[Any]], list[_Bytes]]]] = {
    "string": ("", _texts),
    # a quarter of the time that array() takes
    "long": (0, lambda values: [struct.pack(f"{len(values)}q", *values)]),
    "double": (0.0, lambda values: [struct.pack(f"{len(values)}d", *values)]),
    "boolean": (False, lambda values: [_bits(values)]),
    "binary": (b"", lambda values: [_offsets(map(len, values)), b"".join(values)]),
    "timestamp": (_EPOCH, lambda values: [array("q", [(value - _EPOCH) // _MICROSECOND for value in values])]),
    "date": (date(1970, 1, 1), lambda values: [array("i", [value.toordinal() - _EPOCH_DAY for value in values])]),
    "decimal(38,18)": (Decimal(0), lambda values: [b"".join(map(_scaled, values))]),
}


def arrow_type(column: Column) -> pa.DataType:
    """The Arrow type of a column."""
    import pyarrow as pa

    return {
        "string": pa.string,
        "long": pa.int64,
        "double": pa.float64,
        "boolean": pa.bool_,
        "binary": pa.binary,
        "timestamp": lambda: pa.timestamp("us", "UTC"),
        "date": pa.date32,
        "decimal(38,18)": lambda: pa.decimal128(38, 18),
    }[column.type]()


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a table."""
    import pyarrow as pa

    return pa.schema([pa.field(column.name, arrow_type(column), column.nullable) for column in schema])


def conform(batch: pa.RecordBatch, schema: pa.Schema, path: str) -> pa.RecordBatch:
    """The rows of a part with the columns that its table has by now: null where it has none, widened where it is
    narrower. SinkError, which names `path`, for a value that is another number as a float."""
    import pyarrow as pa

    columns = []
    for field in schema:
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(place)
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except pa.ArrowInvalid as error:
                raise SinkError(f"{path}: column {field.name!r} cannot become {field.type}: {error}") from None
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def to_array(owner: str, column: Column, values: Sequence[Any], keys: Sequence[Any]) -> pa.Array:
    """The values of one column as an array. SinkError as `values.fitting` says."""
    if column.type == "string":
        try:
            plain = _plain_texts(values)
        except UnicodeEncodeError:
            plain = None
        if plain is not None:
            return plain
    kinds = set(map(type, values))
    nulls = column.nullable and type(None) in kinds
    if nulls:
        kinds.discard(type(None))
    fit = values
    if not kinds <= EXACT.get(column.type, frozenset()):
        fit = fitting(owner, column, values, keys)
    try:
        return _array(column, fit, nulls)
    except (OverflowError, struct.error, UnicodeEncodeError):
        # too large, or no text: looking at each value finds out which
        return _array(column, fitting(owner, column, values, keys), nulls)


def _array(column: Column, values: Sequence[Any], nulls: bool) -> pa.Array:
    import pyarrow as pa

    null, pack = _PACK[column.type]
    valid = None
    if nulls:
        valid = pa.py_buffer(_bits([value is not None for value in values]))
        values = [null if value is None else value for value in values]
    if column.type in ("string", "binary") and sum(map(len, values)) >= _TEXT_LIMIT:
        raise SinkError(
            f"column {column.name!r}: {len(values)} rows hold over 512 MiB; keep less in a row, or commit more often"
        )
    return pa.Array.from_buffers(arrow_type(column), len(values), [valid, *map(pa.py_buffer, pack(values))])


def constant(text: str, rows: int) -> pa.Array:
    """An array of `rows` times the same text."""
    import pyarrow as pa

    data = text.encode()
    offsets = array("i", range(0, rows * len(data) + 1, len(data))) if data else array("i", bytes(4 * (rows + 1)))
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data * rows)])


def moments(micros: array[int]) -> pa.Array:
    """An array of timestamps from microseconds since the epoch, 64 bits each; they must not change any more."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.timestamp("us", "UTC"), len(micros), [None, pa.py_buffer(micros)])


def load() -> None:
    """Load the libraries, which takes a tenth of a second, before the first row needs them."""
    with short_spin():
        import pyarrow.compute
        import pyarrow.parquet  # noqa: F401


def parquet_bytes(table: pa.Table) -> pa.Buffer:
    """A table as a Parquet file in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # ids are all different: a dictionary of them would be built only to be thrown away
    dictionary: Any = [name for name in table.schema.names if name != "_id"]
    with pa.BufferOutputStream() as stream:
        pq.write_table(table, stream, compression="zstd", use_dictionary=dictionary)
        return stream.getvalue()
