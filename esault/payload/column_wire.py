"""Arrays on the wire: extension types of the codec, made of columns by `wired` and read by the codec.

    86  NumPy array          length of the dtype's name, the name, zeros up to a multiple of 16 bytes, the items
    87  Arrow Array          an IPC stream of one record batch with one column
    88  Arrow RecordBatch    an IPC stream of one record batch

Whatever the bytes are, what is read is an array of a type that `column.checked` lets through, whose content is what the type
says, or an error: types are looked up in an allow-list, Arrow's content is validated.
"""

from __future__ import annotations

import re
from typing import Any

import msgpack

from esault.errors import EsaultError, FrameError
from esault.payload.column import PLAIN_TYPES, bad_text, numpy_reason
from esault.payload.packed_rows import Rows
from esault.payload.portable import ARROW, NUMPY, RECORDS

__all__ = ["LibraryMissing", "missing_library", "read_arrow", "read_numpy", "read_records", "wired"]

_DTYPE = re.compile(r"[<>|](b1|i[1248]|u[1248]|f[248]|[SU][1-9]\d{0,7}|M8\[\d{0,9}(Y|M|W|D|h|m|s|ms|us)\])")
#: the items begin at a multiple of so many bytes, for NumPy is fast with what is aligned
_ALIGNED = 16
#: name -> (dtype, where the items begin), of names that were seen
_dtypes: dict[bytes, tuple[Any, int]] = {}
_MOST_DTYPES = 1024


class LibraryMissing(EsaultError, ImportError):
    """An array came to a process whose Python lacks the library that it is of."""


def wired(column: Any) -> Any:
    """The column as the codec packs it. It has been checked."""
    if type(column) in PLAIN_TYPES:
        return Rows(column)
    if not hasattr(column, "to_pylist"):
        name = column.dtype.str.encode()
        head = bytes([len(name)]) + name
        return msgpack.ExtType(NUMPY, head + bytes(-len(head) % _ALIGNED) + column.tobytes())
    import pyarrow as pa

    batch = column
    if not isinstance(column, pa.RecordBatch):
        batch = pa.RecordBatch.from_arrays([column], names=[""])
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    return msgpack.ExtType(RECORDS if batch is column else ARROW, stream.getvalue().to_pybytes())


def read_numpy(data: bytes) -> Any:
    """A NumPy array on these very bytes, read-only. Raises FrameError, LibraryMissing."""
    try:
        import numpy as np
    except ImportError as error:
        raise missing_library("NumPy", "numpy") from error
    name = data[1 : 1 + data[0]]
    known = _dtypes.get(name)
    if known is None:
        text = name.decode("ascii")
        if _DTYPE.fullmatch(text) is None:
            raise FrameError(f"{text!r} is no dtype of a column")
        if len(_dtypes) >= _MOST_DTYPES:
            _dtypes.clear()
        known = _dtypes[name] = np.dtype(text), -(-(1 + len(name)) // _ALIGNED) * _ALIGNED
    dtype, start = known
    rows, rest = divmod(len(data) - start, dtype.itemsize)
    if rest or rows < 0:
        raise FrameError(f"{len(data)} bytes are no whole number of items of dtype {dtype}")
    array = np.frombuffer(data, dtype, rows, start) if rows else np.empty(0, dtype)
    array.flags.writeable = False
    kind = dtype.kind
    if (kind == "b" and rows and array.view(np.uint8).max() > 1) or (kind == "U" and bad_text(array)):
        raise FrameError(f"what is no item of dtype {dtype}")
    if kind == "M" and numpy_reason(array, "values") is not None:
        raise FrameError(f"{dtype} is no dtype of a column")
    return array


def read_arrow(data: bytes) -> Any:
    """A pyarrow Array on these very bytes. Raises FrameError, LibraryMissing."""
    batch = read_records(data)
    if batch.num_columns != 1:
        raise FrameError("an array is packed as a record batch of one column")
    return batch.column(0)


def read_records(data: bytes) -> Any:
    """A pyarrow RecordBatch on these very bytes. Raises FrameError, LibraryMissing."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing_library("Arrow", "pyarrow") from error
    from esault.payload.arrow_type import arrow_reason

    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        batch = reader.read_next_batch()
    reason = arrow_reason(batch, "values")
    if reason is not None:
        raise FrameError(reason)
    return batch


def missing_library(kind: str, library: str) -> LibraryMissing:
    """The error that says what to install."""
    return LibraryMissing(
        f"an array of {kind} came to a process whose Python has no {library}; install it there (pip install {library}), "
        "or emit lists"
    )
