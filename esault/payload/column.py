"""Columns: the keys or the values of many tuples as one thing, a tuple or a list, or an array of NumPy or Arrow.

Neither library is a dependency, and neither is loaded by looking: an array can only be there where its library is. What has
passed `checked` is a tuple, a list or such an array, so `is_array` needs to look at nothing but the type.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import Iterator, KeysView, Sequence, ValuesView
from typing import Any

from esault.errors import PayloadError
from esault.payload.loaded import loaded
from esault.payload.remedy import type_name

__all__ = [
    "PLAIN_TYPES",
    "bad_text",
    "checked",
    "has_null",
    "is_array",
    "is_column",
    "listed",
    "numpy_reason",
    "plain",
    "take",
]

#: types of columns that are no arrays
PLAIN_TYPES = (tuple, list)

_KEYS = "bool, integers, bytes and str"
_VALUES = f"{_KEYS}, floats and datetime64 up to microseconds"
#: kinds of NumPy's types that are no column -> what to do about it; `{}` stands for the array
_NUMPY_REMEDIES = {
    "O": "use {0}.tolist(), or a type of its own such as {0}.astype(np.float64)",
    "c": "use a pyarrow.RecordBatch of {0}.real and {0}.imag",
    "m": "use {}.astype(np.int64)",
    "V": "use a pyarrow.RecordBatch of its fields",
    "T": "use {}.astype(np.str_)",
    "f": "use {}.astype(np.float64)",
}
_FINE = ("ns", "ps", "fs", "as", "generic")
#: the first and the last that a datetime can be
_MOMENTS = ("0001-01-01T00:00:00", "9999-12-31T23:59:59.999999")
#: what else people have their data in -> how a column is made of it
_OTHERS = {
    "pandas.Series": "use {}.to_numpy()",
    "pandas.Index": "use {}.to_numpy()",
    "pandas.DataFrame": "use pyarrow.RecordBatch.from_pandas({})",
    "polars.Series": "use {}.to_numpy()",
    "polars.DataFrame": "use each of {}.to_arrow().to_batches()",
    "pyarrow.ChunkedArray": "use {}.combine_chunks()",
    "pyarrow.Table": "emit each of {}.to_batches()",
}


def is_array(column: Any) -> bool:
    """Return whether a column that was checked is an array."""
    return type(column) not in PLAIN_TYPES


def has_null(column: Any) -> bool:
    """Return whether an item is missing in an array."""
    if not hasattr(column, "null_count"):
        return False
    if hasattr(column, "dictionary") and column.dictionary.null_count:  # which may belong to no item
        column = column.dictionary_decode()
    return bool(column.null_count)


def is_column(thing: Any) -> bool:
    """Return whether something that was read is a column: a tuple, or an array."""
    if type(thing) is tuple:
        return True
    numpy, pyarrow = loaded("numpy"), loaded("pyarrow")
    return (numpy is not None and type(thing) is numpy.ndarray) or (
        pyarrow is not None and isinstance(thing, (pyarrow.Array, pyarrow.RecordBatch))
    )


def checked(column: Any, name: str) -> Any:
    """The column as it can be kept and sent; `name` is "keys" or "values". Raises PayloadError, with the remedy.

    The items of tuples and lists are not looked at.
    """
    if type(column) in PLAIN_TYPES:
        return column
    numpy, pyarrow = loaded("numpy"), loaded("pyarrow")
    if numpy is not None and isinstance(column, numpy.ndarray):
        reason = numpy_reason(column, name)
        if reason is not None:
            raise PayloadError(reason)
        if not column.dtype.itemsize:  # of texts that are all empty
            return column.astype(f"{column.dtype.kind}1")
        return column if type(column) is numpy.ndarray else numpy.asarray(column)
    if pyarrow is not None and isinstance(column, (pyarrow.Array, pyarrow.RecordBatch)):
        from esault.payload.arrow_type import arrow_reason

        reason = arrow_reason(column, name)
        if reason is not None:
            raise PayloadError(reason)
        return column
    if isinstance(column, (list, tuple, range, deque, array, KeysView, ValuesView)) or (
        isinstance(column, Sequence) and not isinstance(column, (str, bytes, bytearray, memoryview))
    ):
        return list(column)
    raise PayloadError(f"{name}: {_other(column, name)}")


def _other(column: Any, name: str) -> str:
    for base in type(column).__mro__:
        remedy = _OTHERS.get(f"{base.__module__.split('.')[0]}.{base.__qualname__}")
        if remedy is not None:
            return f"{type_name(type(column))} is no column; {remedy.format(name)}"
    hint = f"use list({name})" if hasattr(column, "__iter__") and not isinstance(column, (str, bytes)) else ""
    remedy = hint or "pass a list, a NumPy array or a pyarrow Array with an item for each tuple"
    return f"{type_name(type(column))} is no column; {remedy}"


def numpy_reason(column: Any, name: str) -> str | None:
    """Return why this NumPy array is no column of this name, and what to do; None if it is one."""
    kind = column.dtype.kind
    said = f"{name}: a NumPy array of dtype {column.dtype}"
    if column.ndim != 1:
        shape = f"{name}: a NumPy array of shape {column.shape} is no column, which has one dimension"
        return f"{shape}; use list(map(tuple, {name}.tolist())) for tuples, or a pyarrow.RecordBatch of its columns"
    if not column.size:  # whatever NumPy takes nothing for
        return None
    if hasattr(column, "mask"):
        return f"{said} with a mask is no column; use {name}.filled(...), or a pyarrow Array with nulls"
    if kind in "biuSU":
        if kind == "U" and bad_text(column):
            return f"{said} holds a lone surrogate, which has no UTF-8; use bytes: np.char.encode({name}, 'utf-8', 'surrogateescape')"
        return None
    if name == "keys":
        fix = (
            f"use {name}.astype(str), or integers such as np.round({name} * 100).astype(np.int64)"
            if kind == "f"
            else f"use {name}.astype(np.int64)"
            if kind in "mM"
            else _NUMPY_REMEDIES.get(kind, "use integers or str").format(name)
        )
        return f"{said} cannot be keys, which are {_KEYS}; {fix}"
    if kind == "f" and column.dtype.itemsize <= 8:
        return None
    if kind == "M":
        numpy = sys.modules["numpy"]
        if numpy.datetime_data(column.dtype)[0] in _FINE:
            what = "is finer than a datetime can be"
            return f"{said} {what}; use {name}.astype('datetime64[us]'), or {name}.astype(np.int64)"
        low, high = (numpy.datetime64(moment, "us").astype(column.dtype) for moment in _MOMENTS)
        if not ((column < low) | (column > high)).any():
            return None
        return (
            f"{said} holds a moment beyond the years 1 to 9999, which no datetime can be; use {name}.astype(np.int64)"
        )
    fix = _NUMPY_REMEDIES.get(kind, "use another type").format(name)
    return f"{said} cannot travel: values are {_VALUES}; {fix}"


def bad_text(column: Any) -> bool:
    """Return whether a NumPy array of str holds what is no text: half a surrogate pair, or no character at all."""
    numpy = sys.modules["numpy"]
    if not column.size or not column.dtype.itemsize:
        return False
    codes = numpy.ascontiguousarray(column).view(f"{column.dtype.byteorder}u4")
    if codes.max() < 0xD800:
        return False
    return bool(((codes >= 0xD800) & (codes < 0xE000) | (codes > 0x10FFFF)).any())


def plain(column: Any) -> Any:
    """A tuple or a list of plain Python objects, such as rows have them; of a RecordBatch, dicts."""
    if type(column) in PLAIN_TYPES:
        return column
    if hasattr(column, "to_pylist"):
        try:
            items: list[Any] = column.to_pylist()
            return items
        except (OverflowError, ValueError, ArithmeticError) as error:
            raise PayloadError(
                f"an array holds what no plain Python object can ({error}); cast it to integers"
            ) from None
    return column.tolist()


def take(column: Any, places: Any) -> Any:
    """The items at these places, in their order, as a column of the same kind; `places` are 64-bit integers in a buffer."""
    if type(column) in PLAIN_TYPES:
        return tuple([column[i] for i in listed(places)])
    if hasattr(column, "to_pylist"):
        import pyarrow as pa

        # Not `pa.array`, which loads pandas wherever that is installed.
        chosen = pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)])
        return column.take(chosen)
    import numpy as np

    return column[np.frombuffer(places, np.int64)]


def listed(places: Any) -> Iterator[int]:
    """Places as Python's integers."""
    return iter(places.tolist())
