"""Keys and values as JSON text; what JSON has no word for is written as the table below says.

tuple                          list
record                         object with its fields: a dataclass, an attrs class, a msgspec.Struct, a pydantic model
NamedTuple                     object, as the value or anywhere in a record; in a plain list, tuple or dict it is the list
                               that Python's encoder makes of it
datetime, date                 text, ISO 8601
Decimal                        text, its digits
UUID, Path                     text
member of an Enum              its value
scalar of NumPy                as Python's
bytes                          text, base64
set, frozenset                 list, sorted
nan, inf, -inf                 text: "NaN", "Infinity", "-Infinity"
a dict's key that is no text   text: as above, and for a tuple its JSON
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from esault.errors import SinkError
from esault.payload.json_text import not_finite
from esault.payload.record import Record, record_of
from esault.payload.remedy import type_name
from esault.payload.scalar import plainer

__all__ = ["encode_row", "encode_value", "with_objects"]


#: what stands before the value in a row without a key
_BEFORE = b'{"key": null, "value": '


def with_objects(values: Sequence[Any]) -> Sequence[Any]:
    """The values of rows, NamedTuples and other records among them as dicts."""
    if all(record_of(kind) is None for kind in set(map(type, values))):
        return values
    try:
        return [value if (record := record_of(type(value))) is None else _object(record, value) for value in values]
    except (TypeError, RecursionError):
        return values  # `encode_row` finds it too, and says which one it is


def encode_row(row: dict[str, Any]) -> bytes:
    """One line of JSON with its newline, UTF-8, of a dict with "key" and "value". SinkError for what has no place in it."""
    try:
        text = _encode(row)
    except (TypeError, ValueError, RecursionError):
        text = _encode_carefully(row)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half characters: JSON can escape them
        return json.dumps(_plain(row)).encode() + b"\n"


def encode_value(value: Any) -> bytes:
    """The JSON of a value by itself, UTF-8. SinkError for what has no place in it."""
    try:
        (value,) = with_objects((value,))
        return _encode(value).encode()
    except (TypeError, ValueError, RecursionError):
        return encode_row({"key": None, "value": value})[len(_BEFORE) : -2]


def _encode_carefully(row: dict[str, Any]) -> str:
    try:
        return _encode(_plain(row))
    except RecursionError:
        raise SinkError(f"the value of key {row['key']!r} is nested too deeply to be written as JSON") from None
    except TypeError as error:
        reason = _reason(row["key"], "key") or _reason(row["value"], "value") or str(error)
        raise SinkError(f"the value of key {row['key']!r} cannot be written as JSON: {reason}") from None


def _extend(value: Any) -> Any:
    """Called by the encoder for what JSON has no word for."""
    way = plainer(type(value))
    if way is not None and (plain := way(value)) is not value:
        return plain
    if isinstance(value, date):  # and datetime
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, (set, frozenset)):
        return _sorted(value, False)
    record = record_of(type(value))
    if record is None:
        raise TypeError(f"of type {type_name(type(value))}")
    return _object(record, value)


#: types of values that are words of JSON as they are
_WORDS = frozenset({str, int, bool, type(None)})


def _object(record: Record, value: Any) -> dict[str, Any]:
    try:
        items = record.items(value).items()
    except AttributeError as error:
        raise TypeError(f"of type {type(value).__name__} and lacks a field: {error}") from None
    return {name: one if type(one) in _WORDS else _plain(one, True) for name, one in items}


def _reason(value: Any, place: str) -> str | None:
    """Return the place of the innermost thing that has no form in JSON, and what to do; None where all have one."""
    try:
        _plain(value, True)
    except TypeError as error:
        for where, part in _parts(value):
            inner = _reason(part, place + where)
            if inner is not None:
                return inner
        return f"{place} is {error}; map it to text, numbers, lists and dicts before"
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    record = record_of(type(value))
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", one) for key, one in value.items())
    elif record is not None:
        yield from ((f".{name}", getattr(value, name)) for name in record.names if hasattr(value, name))
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{i}]", one) for i, one in enumerate(value))


#: types whose values have an order among themselves; that of sets is not one, and tuples may hold sets
_ORDERED = (str, bytes, int, float, Decimal, date)

#: NaN is no JSON, although Python would write and read it
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_extend).encode


def _plain(value: Any, named: bool = False) -> Any:
    """The same in the words of JSON, all the way down; for what the encoder does not take. `named`: NamedTuples as objects."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else not_finite(value)
    if isinstance(value, (list, tuple)):
        record = record_of(type(value)) if named else None
        return [_plain(one, named) for one in value] if record is None else _object(record, value)
    if isinstance(value, dict):
        return {_as_name(key): _plain(one, named) for key, one in value.items()}
    if isinstance(value, (set, frozenset)):
        return _sorted(value, named)
    return _plain(_extend(value), named)


def _as_name(key: Any) -> str:
    if isinstance(key, str):
        return key
    plain = _plain(key)
    return plain if isinstance(plain, str) else _encode(plain)


def _sorted(values: set[Any] | frozenset[Any], named: bool) -> list[Any]:
    """Always in the same order: numbers, texts and dates in theirs, all else by its JSON."""
    # nan has no place in an order: it is not even equal to itself
    if all(isinstance(one, _ORDERED) and one == one for one in values):
        try:
            return [_plain(one, named) for one in sorted(values)]
        except TypeError:
            pass  # a number and a text
    return sorted((_plain(one, named) for one in values), key=_encode)
