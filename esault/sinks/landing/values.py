"""Python values that fit a column: exactly, or not at all. Nothing is rounded, cut or guessed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from typing import Any

from esault.errors import SinkError
from esault.payload.record import Record, record_of
from esault.payload.scalar import plainer
from esault.sinks.landing.schema import Column

__all__ = ["EXACT", "fitting", "short", "spread_keys", "unfold"]

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
            "it has no time zone, so it is unknown which moment it means; use datetime.now(timezone.utc), "
            "or value.replace(tzinfo=timezone.utc) where it is UTC"
        )
    if type(value) is not datetime and getattr(value, "nanosecond", None):  # one of pandas
        raise ValueError("it has nanoseconds, and the column microseconds; use value.floor('us')")
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
    does not fit; `keys` names the rows, and is `values` for the key's column."""
    checked = _CHECKED[column.type]
    fit: list[Any] = []
    for key, value, plain in zip(keys, values, _plain(values)):
        if plain is None and column.nullable:
            fit.append(None)
            continue
        try:
            fit.append(checked(plain))
        except (TypeError, ValueError) as error:
            raise SinkError(
                f"{owner}: column {column.name!r} is {column.python}, but "
                f"{'a key is' if values is keys else f'key {short(key)} has'} {short(value)}, "
                f"of type {type(value).__name__}{_remedy(column, value, values is keys, str(error))}"
            ) from None
    return fit


#: types that a column may have, by name
_DECLARED = frozenset(("str", "int", "float", "bool", "bytes", "date", "datetime", "Decimal"))


def _remedy(column: Column, value: Any, of_keys: bool, why: str) -> str:
    """Return why the value does not fit and what to do, as far as that can be said."""
    if value is None:
        key_by = "use .key_by(...) before, or " if of_keys else ""
        return f"; {key_by}declare the column with `| None` to allow nulls"
    if why:
        return f": {why}"
    if record_of(type(value)) is not None or isinstance(value, (list, tuple, dict, set)):
        return "; a column holds one value: give its parts columns of their own, keep it as JSON in a str, or use JsonLines"
    if of_keys:
        return f"; it is the key's column: declare its type there, or with key={{{column.name!r}: ...}} beside a class"
    kind = type(value).__name__
    return f"; declare the column as {kind}, or emit {column.python}" if kind in _DECLARED else ""


def unfold(
    owner: str, key_name: str, names: Sequence[str], values: Sequence[Any], keys: Sequence[Any]
) -> list[Sequence[Any]]:
    """The tuples' values as one sequence per column of `names`: scalars where that is one column, tuples or lists of
    that length, or by name dicts and records, whose missing names are null. What has the name of the key's column too must
    have the key there. SinkError names what does not fit."""
    width = len(names)
    if width == 0:
        return []
    kinds = set(map(type, values))
    if width == 1 and not any(issubclass(kind, _SEVERAL) or record_of(kind) is not None for kind in kinds):
        return [values]
    if kinds <= {tuple, list} and set(map(len, values)) == {width}:
        return list(zip(*values))
    found = _by_name(kinds.pop(), values, {key_name, *names}) if len(kinds) == 1 else None
    if found is not None and (key_name not in found or _plain(found[key_name]) == _plain(keys)):
        nulls = [None] * len(values)
        return [found.get(name, nulls) for name in names]
    return _row_by_row(owner, key_name, names, values, keys)


def spread_keys(
    owner: str, names: Sequence[str], keys: Sequence[Any], values: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Keys and values for a table of these columns: a key that is a tuple fills as many as it has parts, the others stand before its
    value then, or by name in it. A value None stays none in all of its own columns. SinkError where the value says another key."""
    if not keys or type(keys[0]) is not tuple:  # a look at each would take a tenth of what a row costs here
        return keys, values
    told = [key if type(key) is tuple and key else (key,) for key in keys]
    rows = [value if len(key) == 1 else _behind(owner, names, key, value) for key, value in zip(told, values)]
    return [key[0] for key in told], rows


def _behind(owner: str, names: Sequence[str], key: tuple[Any, ...], value: Any) -> Any:
    """The value as it stands behind the first part of its key."""
    parts = key[1:]
    record = record_of(type(value))
    if isinstance(value, dict) or record is not None:
        where = f"{owner}: the value of key {short(key)}"
        fields = dict(value if record is None else _items(where, record, value))
        for name, part in zip(names[1:], parts):
            if name in fields and _plain([fields[name]]) != _plain([part]):
                raise SinkError(
                    f"{where} has {name!r} too, a column of the key, and there it is {short(fields[name])}; leave it out of the value"
                )
            fields[name] = part
        return fields
    if value is None:
        return (*parts, *[None] * (len(names) - len(key)))
    return (*parts, *(value if isinstance(value, (tuple, list)) else (value,)))


#: what fills several columns, besides records
_SEVERAL = (tuple, list, dict)


def _by_name(kind: type, values: Sequence[Any], known: set[str]) -> dict[str, list[Any]] | None:
    """The columns of values that are all of this kind; None where they must be looked at one by one."""
    if kind is dict:
        there = set(chain.from_iterable(values))
        return {name: [row.get(name) for row in values] for name in there} if there <= known else None
    record = record_of(kind)
    if record is None or record.open or not known.issuperset(record.names):
        return None
    try:
        return dict(zip(record.names, map(list, zip(*map(record.values, values)))))
    except AttributeError:  # a field that was never set
        return None


def _row_by_row(
    owner: str, key_name: str, names: Sequence[str], values: Sequence[Any], keys: Sequence[Any]
) -> list[Sequence[Any]]:
    """As `unfold`, also for values of several kinds; says which one does not fit."""
    columns: list[list[Any]] = [[] for _ in names]
    known = {key_name, *names}
    for key, value in zip(keys, values):
        where = f"{owner}: the value of key {short(key)}"
        record = record_of(type(value))
        if isinstance(value, dict) or record is not None:
            fields = value if record is None else _items(where, record, value)
            if not known.issuperset(fields):
                extra = next(name for name in fields if name not in known)
                place = "; a plain tuple fills them by place" if isinstance(value, tuple) else ""
                raise SinkError(
                    f"{where} has {extra!r}, which is no column; the value's columns are {', '.join(names)}{place}"
                )
            if key_name in fields and _plain([fields[key_name]]) != _plain([key]):
                get = f"value[{key_name!r}]" if record is None else f"value.{key_name}"
                raise SinkError(
                    f"{where} has {key_name!r} too, the name of the key's column, and there it is "
                    f"{short(fields[key_name])}; use .key_by(lambda value: {get}) before, or another name for that column"
                )
            row: Sequence[Any] = [fields.get(name) for name in names]
        else:
            row = value if isinstance(value, (tuple, list)) else (value,)
        if len(row) != len(names):
            raise SinkError(
                f"{where} must fill {len(names)} columns ({', '.join(names)}), but it is {short(value)}, of type "
                f"{type(value).__name__}; use a tuple of them, a dict, or an object with such fields"
            )
        for cells, cell in zip(columns, row):
            cells.append(cell)
    return list(columns)


def _items(where: str, record: Record, value: Any) -> dict[str, Any]:
    try:
        return record.items(value)
    except AttributeError as error:
        raise SinkError(f"{where}, of type {type(value).__name__}, lacks a field: {error}") from None


def _plain(values: Sequence[Any]) -> list[Any]:
    """With what stands for a plainer value as that."""
    ways = {kind: plainer(kind) for kind in set(map(type, values))}
    if not any(ways.values()):
        return list(values)
    return [value if (way := ways[type(value)]) is None else way(value) for value in values]


def short(value: Any) -> str:
    """The value as Python writes it, shortened for a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
