"""Arrow types that can be columns: those whose items are plain Python objects that can travel by themselves."""

from __future__ import annotations

from typing import Any

__all__ = ["arrow_reason"]

#: type -> what in it cannot travel and the remedy, or None
_known: dict[Any, str | None] = {}
_MOST_KNOWN = 1024


def arrow_reason(column: Any, name: str) -> str | None:
    """Return why this Array or RecordBatch is no column of this name ("keys", "values"), and what to do; None if it is one."""
    import pyarrow as pa

    batch = isinstance(column, pa.RecordBatch)
    if batch and name == "keys":
        return "keys: a pyarrow RecordBatch cannot be keys; use one of its columns"
    if batch and len(set(column.schema.names)) < len(column.schema.names):
        return f"{name}: a pyarrow RecordBatch with two columns of one name cannot travel; rename one"
    for each in [field.type for field in column.schema] if batch else [column.type]:
        reason = _look(each)
        if reason is None and name == "keys" and not _may_be_key(each):
            return (
                f"keys: a pyarrow Array of {each} cannot be keys, which are bool, integers, binary and string; "
                "use keys.cast(pyarrow.string()), or integers"
            )
        if reason is not None:
            kind = "RecordBatch with" if batch else "Array of"
            return f"{name}: a pyarrow {kind} {each} cannot travel: {reason}"
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        return f"{name}: a pyarrow {type(column).__name__} is damaged: {error}"
    return next(filter(None, [_beyond(each, name) for each in (column.columns if batch else [column])]), None)


def _beyond(array: Any, name: str) -> str | None:
    """Return whether an array of moments holds one that Python has no date for."""
    import pyarrow.types as t

    if not (t.is_date(array.type) or t.is_timestamp(array.type)):
        return None
    import pyarrow.compute as pc

    try:
        pc.min_max(array).as_py()
    except (OverflowError, ValueError):
        return f"{name}: a pyarrow Array of {array.type} holds a date that is not in the years 1 to 9999; cast it to integers"
    return None


def _look(kind: Any) -> str | None:
    if kind not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[kind] = _judge(kind)
    return _known[kind]


def _judge(kind: Any) -> str | None:
    import pyarrow.types as t

    if _is_extension(kind):
        return f"{kind} is an extension type; use the array's .storage"
    if t.is_dictionary(kind):
        return _look(kind.value_type)
    if t.is_timestamp(kind):
        if kind.unit == "ns":
            return f"{kind} has nanoseconds, which a datetime cannot hold; cast it to timestamp('us')"
        return _zone(kind)
    if t.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        if len({field.name for field in fields}) < len(fields):
            return f"{kind} has two fields of one name; rename one"
        return next((reason for reason in map(_look, [field.type for field in fields]) if reason is not None), None)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return _look(kind.value_type)
    simple = (t.is_float32, t.is_float64, t.is_date, t.is_decimal)
    if _may_be_key(kind) or any(is_one(kind) for is_one in simple):
        return None
    return f"{kind} has no plain Python object that can; cast it to another type"


def _is_extension(kind: Any) -> bool:
    """Return whether a type is an extension type."""
    import pyarrow as pa

    return isinstance(kind, pa.BaseExtensionType)


def _zone(kind: Any) -> str | None:
    import pyarrow as pa

    if kind.tz is None:
        return None
    try:
        pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes(8))]).to_pylist()
    except Exception as error:
        return f"its time zone is not known here ({error}); cast it to timestamp('us', 'UTC')"
    return None


def _may_be_key(kind: Any) -> bool:
    import pyarrow.types as t

    if t.is_dictionary(kind):
        return _may_be_key(kind.value_type)
    texts = (t.is_string, t.is_large_string, t.is_binary, t.is_large_binary, t.is_fixed_size_binary)
    return any(is_one(kind) for is_one in (t.is_null, t.is_boolean, t.is_integer, *texts))
