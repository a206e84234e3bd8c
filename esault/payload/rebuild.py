"""Makes again what packed values hold of kinds whose own pickles could do more than hold data, or check too little.

Each function here may be called by bytes of any origin: it checks what it gets, and builds that one kind.
"""

from __future__ import annotations

import enum
import logging
import re
import sys
from collections.abc import Callable
from datetime import tzinfo
from types import FunctionType, MethodType
from typing import Any

from esault.errors import FrameError

__all__ = [
    "array",
    "array_view",
    "arrow",
    "arrow_of",
    "dtype_of",
    "logger",
    "member",
    "method",
    "none_type",
    "object_array",
    "scalar",
    "unset",
    "zone",
]

_SIMPLE = re.compile(
    r"[<>|=](b1|[iu][1248]|f(2|4|8|12|16)|c(8|16|24|32)|[SU]\d{1,9}|V\d{1,9}|[mM]8(\[\d{0,9}(generic|Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?)"
)
#: depth of records in records
_DEEP = 16


def none_type() -> type[None]:
    """The type of None."""
    return type(None)


def unset() -> Any:
    """Return msgspec's mark for a field that is not there."""
    import msgspec

    return msgspec.UNSET


def logger(name: str | None) -> logging.Logger:
    """A logger by its name; None: the one above all. Raises FrameError."""
    if name is not None and type(name) is not str:
        raise FrameError("a logger is named by a text")
    return logging.getLogger(name)


def member(kind: type[enum.Enum], name: str) -> enum.Enum:
    """A member of an Enum by its name. Raises FrameError."""
    if not (isinstance(kind, type) and issubclass(kind, enum.Enum)) or name not in kind.__members__:
        raise FrameError(f"{name!r:.40} is no member of {getattr(kind, '__qualname__', kind)!r:.40}")
    return kind.__members__[name]


def zone(key: str) -> tzinfo:
    """A time zone by its name."""
    from zoneinfo import ZoneInfo

    if type(key) is not str:
        raise FrameError("a time zone is named by a text")
    return ZoneInfo(key)


def method(owner: Any, name: str) -> Callable[..., Any]:
    """A method of an object of the user's own, bound to it: a function in the body of its class, or of a base of it."""
    from esault.payload.class_names import is_own

    kind = owner if isinstance(owner, type) else type(owner)
    for base in kind.__mro__:
        found = vars(base).get(name)
        if isinstance(found, (classmethod, staticmethod)):
            found = found.__func__
        if found is not None:
            if type(found) is FunctionType and is_own(found.__module__):
                return MethodType(found, owner)
            break
    raise FrameError(f"{name!r} is no method of {kind.__qualname__} that its user wrote")


# NumPy ------------------------------------------------------------------------------------------------


def dtype_of(said: Any, depth: int = 0) -> Any:
    """A dtype from its name, or from a tuple of (name, dtype, shape) for one with fields. Raises FrameError."""
    import numpy as np

    if type(said) is str:
        if _SIMPLE.fullmatch(said) is None:
            raise FrameError(f"{said!r:.40} is no dtype that can travel")
        return np.dtype(said)
    if type(said) is not tuple or depth == _DEEP:
        raise FrameError("a dtype is a text, or a tuple of fields")
    fields: list[Any] = []
    for name, kind, shape in said:
        if type(shape) is not tuple or any(type(size) is not int or size < 0 for size in shape):
            raise FrameError("a field's shape is a tuple of integers")
        fields.append((name, dtype_of(kind, depth + 1), shape))
    return np.dtype(fields)


def array(dtype: Any, shape: tuple[int, ...], order: str, data: bytes) -> Any:
    """A NumPy array of its own memory. Raises FrameError."""
    import numpy as np

    kind = dtype_of(dtype)
    if type(data) is not bytes or type(shape) is not tuple or any(type(size) is not int or size < 0 for size in shape):
        raise FrameError("an array is bytes in a shape")
    count = 1
    for size in shape:
        count *= size
    if count * kind.itemsize != len(data):
        raise FrameError(f"{len(data)} bytes are no array of {dtype} in the shape {shape}")
    flat = np.frombuffer(data, kind, count) if count and kind.itemsize else np.empty(count, kind)
    return flat.reshape(shape, order="F" if order == "F" else "C").copy(order="F" if order == "F" else "C")


def array_view(base: Any, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
    """A NumPy array in the memory of another one. Raises FrameError."""
    import numpy as np

    kind = dtype_of(dtype)
    if type(base) is not np.ndarray or base.dtype.hasobject:
        raise FrameError("a view is one of a NumPy array")
    try:
        return np.ndarray(shape, kind, base, offset, strides)  # which looks whether all of it lies within
    except (TypeError, ValueError) as error:
        raise FrameError(f"no view of an array of {base.nbytes} bytes: {error}") from None


def object_array(shape: tuple[int, ...], items: list[Any]) -> Any:
    """A NumPy array of objects. Raises FrameError."""
    import numpy as np

    flat = np.empty(len(items), object)
    for i, item in enumerate(items):
        flat[i] = item
    return flat.reshape(shape)


def scalar(dtype: Any, data: bytes) -> Any:
    """A NumPy scalar. Raises FrameError."""
    return array(dtype, (), "C", data)[()]


# Arrow ------------------------------------------------------------------------------------------------


def arrow(kind: str, data: bytes) -> Any:
    """A thing of Arrow out of an IPC stream, whose content is looked at. Raises FrameError."""
    from esault.payload.column_wire import missing_library

    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing_library("Arrow", "pyarrow") from error
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            if kind == "schema":
                return reader.schema
            table = reader.read_all()
            table.validate(full=True)
            if kind == "table":
                return table
            if kind == "type":
                return table.schema.field(0).type
            if kind == "field":
                return table.schema.field(0)
            if kind == "batch":
                batches = table.to_batches()
                return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
            column = table.column(0)
            if kind == "chunked":
                return column
            if kind == "array":
                return column.chunk(0) if column.num_chunks else pa.array([], column.type)
            if kind == "scalar":
                return column[0]
    except pa.ArrowException as error:
        raise FrameError(f"what is no {kind} of Arrow: {error}") from error
    raise FrameError(f"{kind!r:.40} is no kind of Arrow's")


def arrow_of(thing: Any) -> tuple[str, bytes] | None:
    """Return what `arrow` makes this thing of again; None for what is none of Arrow's that can be written so."""
    pa: Any = sys.modules["pyarrow"]
    if isinstance(thing, pa.Schema):
        kind, batches, schema = "schema", [], thing
    elif isinstance(thing, pa.Table):
        kind, batches, schema = "table", thing.to_batches(), thing.schema
    elif isinstance(thing, pa.RecordBatch):
        kind, batches, schema = "batch", [thing], thing.schema
    elif isinstance(thing, pa.Field):
        kind, batches, schema = "field", [], pa.schema([thing])
    elif isinstance(thing, pa.DataType):
        kind, batches, schema = "type", [], pa.schema([pa.field("", thing)])
    elif isinstance(thing, (pa.Array, pa.ChunkedArray, pa.Scalar)):
        if isinstance(thing, pa.Scalar):
            kind, chunks = "scalar", [pa.array([thing.as_py()], thing.type)]
        elif isinstance(thing, pa.Array):
            kind, chunks = "array", [thing]
        else:
            kind, chunks = "chunked", thing.chunks
        schema = pa.schema([pa.field("", thing.type)])
        batches = [pa.RecordBatch.from_arrays([chunk], schema=schema) for chunk in chunks]
    else:
        return None
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return kind, stream.getvalue().to_pybytes()
