"""Keys and values as JSON text; what JSON has no word for is written as the table below says.

tuple                          list
datetime, date                 text, ISO 8601
Decimal                        text, its digits
bytes                          text, base64
set, frozenset                 list, sorted
nan, inf, -inf                 text: "NaN", "Infinity", "-Infinity"
a dict's key that is no text   text: as above, and for a tuple its JSON
"""

from __future__ import annotations

import base64
import json
import math
from datetime import date
from decimal import Decimal
from typing import Any

from esault.errors import SinkError

__all__ = ["encode_row"]


def encode_row(row: dict[str, Any]) -> bytes:
    """One line of JSON with its newline, UTF-8. Raises SinkError for a value that cannot travel either."""
    try:
        text = _encode(row)
    except (TypeError, ValueError):
        text = _encode_carefully(row)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half characters: JSON can escape them
        return json.dumps(_plain(row)).encode() + b"\n"


def _encode_carefully(row: dict[str, Any]) -> str:
    try:
        return _encode(_plain(row))
    except RecursionError:
        raise SinkError(f"the value of key {row.get('key')!r} is nested too deeply to be written as JSON") from None
    except TypeError as error:
        raise SinkError(f"the value of key {row.get('key')!r} cannot be written as JSON: {error}") from None


def _extend(value: Any) -> Any:
    """Called by the encoder for what JSON has no word for."""
    if isinstance(value, date):  # and datetime
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, (set, frozenset)):
        return _sorted(value)
    raise TypeError(f"{type(value).__name__} is none of the types that values may have")


#: types whose values have an order among themselves; that of sets is not one, and tuples may hold sets
_ORDERED = (str, bytes, int, float, Decimal, date)

#: NaN is no JSON, although Python would write and read it
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_extend).encode


def _plain(value: Any) -> Any:
    """The same in the words of JSON, all the way down; for what the encoder does not take."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _name_of(value)
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {_as_name(key): _plain(one) for key, one in value.items()}
    return _plain(_extend(value))


def _as_name(key: Any) -> str:
    if isinstance(key, str):
        return key
    plain = _plain(key)
    return plain if isinstance(plain, str) else _encode(plain)


def _name_of(number: float) -> str:
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _sorted(values: set[Any] | frozenset[Any]) -> list[Any]:
    """Always in the same order: numbers, texts and dates in theirs, all else by its JSON."""
    # nan has no place in an order: it is not even equal to itself
    if all(isinstance(one, _ORDERED) and one == one for one in values):
        try:
            return [_plain(one) for one in sorted(values)]
        except TypeError:
            pass  # a number and a text
    return sorted((_plain(one) for one in values), key=_encode)
