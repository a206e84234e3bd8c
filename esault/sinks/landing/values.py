"""Which Python values fit a column: exactly, or not at all. Nothing is rounded, cut or guessed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from esault.errors import SinkError
from esault.sinks.landing.schema import Column

__all__ = ["EXACT", "fitting", "short", "unfold"]

_LONG = range(-(2**63), 2**63)

#: types whose values need no look one by one; their subclasses, and other columns, are looked at
EXACT: dict[str, frozenset[type]] = {
    "string": frozenset({str}),
    "long": frozenset({int}),
    "double": frozenset({float}),
    "boolean": frozenset({bool}),
    "binary": frozenset({bytes}),
    "date": frozenset({date}),
}


def _text(value: Any) -> Any:
    if not isinstance(value, str):
        raise TypeError
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half a surrogate pair, which is no valid text") from None
    return value


def _long(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    if int(value) not in _LONG:
        raise ValueError("it does not fit into 64 bits; declare the column as Decimal or str")
    return value


def _double(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    try:
        number = float(value)
    except OverflowError:
        number = None
    if number is None or (isinstance(value, int) and number != value):
        raise ValueError("as a float it would be another number; declare the column as int, Decimal or str")
    return number


def _boolean(value: Any) -> Any:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _binary(value: Any) -> Any:
    if not isinstance(value, bytes):
        raise TypeError
    return value


def _timestamp(value: Any) -> Any:
    if not isinstance(value, datetime):
        raise TypeError
    if value.utcoffset() is None:
        raise ValueError(
            "it has no time zone, so nobody knows which moment it means; use datetime.now(timezone.utc), "
            "or value.replace(tzinfo=timezone.utc) where it is UTC"
        )
    return value


def _date(value: Any) -> Any:
    if isinstance(value, datetime) or not isinstance(value, date):
        raise TypeError
    return value


def _decimal(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (Decimal, int)):
        raise TypeError
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError("a Decimal column holds finite numbers only; declare it as float")
    if not number:
        return Decimal(0)
    _, digits, exponent = number.as_tuple()
    beyond = digits[max(0, len(digits) + 18 + int(exponent)) :]
    if number.adjusted() >= 20 or any(beyond):
        raise ValueError("it has more than 20 digits before, or 18 after the point; declare the column as str or float")
    return number


_CHECKED: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "long": _long,
    "double": _double,
    "boolean": _boolean,
    "binary": _binary,
    "timestamp": _timestamp,
    "date": _date,
    "decimal(38,18)": _decimal,
}


def fitting(owner: str, column: Column, values: Sequence[Any], keys: Sequence[Any]) -> list[Any]:
    """The values as they go into the column, None for null. SinkError, which begins with `owner`, for the first that
    does not fit; `keys` names the rows."""
    checked = _CHECKED[column.type]
    fit: list[Any] = []
    for key, value in zip(keys, values):
        if value is None and column.nullable:
            fit.append(None)
            continue
        try:
            fit.append(checked(value))
        except (TypeError, ValueError) as error:
            why = f": {error}" if str(error) else ""
            if value is None:
                why = "; declare the column with `| None` to allow nulls"
            raise SinkError(
                f"{owner}: column {column.name!r} is {column.python}, but key {short(key)} has {short(value)}, "
                f"of type {type(value).__name__}{why}"
            ) from None
    return fit


def unfold(owner: str, names: Sequence[str], values: Sequence[Any], keys: Sequence[Any]) -> list[Sequence[Any]]:
    """The tuples' values as one sequence per column of `names`: scalars where that is one column, tuples or lists of
    that length, or dicts by name, of which missing names are null. SinkError names what does not fit."""
    width = len(names)
    if width == 0:
        return []
    kinds = set(map(type, values))
    if width == 1 and not kinds & {tuple, list, dict}:
        return [values]
    if kinds <= {tuple, list} and set(map(len, values)) == {width}:
        return list(zip(*values))
    columns: list[list[Any]] = [[] for _ in names]
    known = set(names)
    for key, value in zip(keys, values):
        if isinstance(value, dict):
            if not known.issuperset(value):
                extra = next(name for name in value if name not in known)
                raise SinkError(
                    f"{owner}: the value of key {short(key)} has {extra!r}, which is no column; "
                    f"the value's columns are {', '.join(names)}"
                )
            row: Sequence[Any] = [value.get(name) for name in names]
        elif isinstance(value, (tuple, list)):
            row = value
        else:
            row = (value,)
        if len(row) != width:
            raise SinkError(
                f"{owner}: the value of key {short(key)} must fill {width} columns ({', '.join(names)}), "
                f"but it is {short(value)}, of type {type(value).__name__}"
            )
        for cells, cell in zip(columns, row):
            cells.append(cell)
    return list(columns)


def short(value: Any) -> str:
    """The value as Python writes it, shortened for a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
