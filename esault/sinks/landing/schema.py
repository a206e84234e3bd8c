"""The columns of a landed table: from Python types to names that last.

| Python | name in the log | Parquet, Spark |
|---|---|---|
| `str`, `UUID`, `Path` | string | UTF-8 string |
| `int` | long | 64 bits |
| `float` | double | 64 bits |
| `bool` | boolean | |
| `bytes` | binary | |
| `datetime` | timestamp | microseconds, UTC |
| `date` | date | |
| `Decimal` | decimal(38,18) | exact: 20 digits before the point, 18 after it |

`T | None` and `Optional[T]` allow nulls. An Enum and a Literal have the type of their values, a subclass, a NewType and an
Annotated that of what they are made from.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from esault.errors import SinkError
from esault.payload.record import Record, Unresolved, record_of
from esault.payload.scalar import plainer
from esault.topology.arguments import listed

__all__ = [
    "ADDED",
    "UPSERT_ADDED",
    "Column",
    "Schema",
    "parse_columns",
    "parse_primary_key",
    "schema_from_json",
    "schema_to_json",
]

_TYPES: dict[type, str] = {
    str: "string",
    int: "long",
    float: "double",
    bool: "boolean",
    bytes: "binary",
    datetime: "timestamp",
    date: "date",
    Decimal: "decimal(38,18)",
}
_PYTHON = {name: python.__name__ for python, name in _TYPES.items()}
_KNOWN = f"{', '.join(sorted(_PYTHON.values()))}, UUID, Path and an Enum of one type, each also with `| None`"
#: around the annotations of a TypedDict
_REQUIRED, _NOT_REQUIRED = ("Required", "ReadOnly"), "NotRequired"


@dataclass(frozen=True)
class Column:
    """One column; `type` is the name in the log."""

    name: str
    type: str
    nullable: bool = False

    @property
    def python(self) -> str:
        """The type as the user writes it, such as `int` or `str | None`."""
        return _PYTHON[self.type] + (" | None" if self.nullable else "")


Schema = tuple[Column, ...]

#: what SparkTable adds: the tuple's id, when the tuple it descends from was due, and the run's identity
ADDED: Schema = (Column("_id", "string", True), Column("_time", "timestamp"), Column("_run", "string"))
#: what a table with a primary key has instead: when the row was written, which says which of two rows of a key is newer,
#: and whether it says that there is no row of this key any more
UPSERT_ADDED: Schema = (Column("_updated", "timestamp"), Column("_deleted", "boolean"))


def parse_columns(owner: str, columns: Any, reserved: Sequence[str] = (), key: Any = None) -> Schema:
    """The schema of `columns={"name": type}`, or of a class whose fields they are; the key's column is the first.

    `key` goes with a class: the name of the key's column, or `{"name": type}`, "key" if it is not said. A field of that name
    is the key's; without one the key has a column beside the fields', of str or of that type. SinkError, which begins with
    `owner`, names what is wrong.
    """
    record = record_of(columns) if isinstance(columns, type) else None
    if record is not None:
        return _of_class(owner, record, key, reserved)
    if not isinstance(columns, Mapping):
        hint = f"; write {type(columns).__name__}, the class" if record_of(type(columns)) else ""
        raise SinkError(
            f'{owner}: columns must be a dict such as {{"word": str, "total": int}}, or a class with fields such as a '
            f"dataclass, got {columns!r}{hint}"
        )
    if not columns:
        raise SinkError(f'{owner}: columns is empty; the key is the first column, as in {{"word": str, "total": int}}')
    if key is not None:
        raise SinkError(
            f"{owner}: key={key!r} goes with a class; in columns={{...}} the key's is the first: leave key out "
            "(one row for each key: primary_key=...)"
        )
    _check_names(owner, columns, reserved)
    return tuple([_column(owner, f"column {name!r} has the type", name, python) for name, python in columns.items()])


def parse_primary_key(
    owner: str, columns: Schema, primary_key: str | Sequence[str] | None, deleted: str | None
) -> tuple[str, ...]:
    """The primary key: a column's name or several, of whose values the table has one row, the newest; empty without one.

    `deleted` names a bool column that is true in a row which says that there is none any more. SinkError, which begins
    with `owner`, names what is wrong."""
    there = {column.name: column for column in columns}
    if primary_key is None:
        if deleted is not None:
            raise SinkError(f"{owner}: deleted={deleted!r} goes with a primary key: primary_key={columns[0].name!r}")
        return ()
    names = tuple(listed(primary_key))
    if not names or len(set(names)) < len(names):
        raise SinkError(f"{owner}: primary_key must name a column, or several once each, got {primary_key!r}")
    for name in names:
        if name not in there:
            raise SinkError(
                f"{owner}: primary_key names {name!r}, which is no column; the columns are {', '.join(there)}"
            )
        if there[name].nullable:
            raise SinkError(
                f"{owner}: column {name!r} is of the primary key and may be null; declare it as "
                f"{there[name].python.removesuffix(' | None')}"
            )
    if deleted is not None and (deleted not in there or there[deleted].type != "boolean" or deleted in names):
        raise SinkError(
            f"{owner}: deleted must name a column of bool that is not of the primary key, got {deleted!r}; "
            f"the columns are {', '.join(f'{c.name}: {c.python}' for c in columns)}"
        )
    return names


def _check_names(owner: str, names: Iterable[Any], reserved: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise SinkError(f"{owner}: a column's name must be a non-empty str, got {name!r}")
        folded = name.casefold()
        if folded in seen:
            raise SinkError(
                f"{owner}: columns {seen[folded]!r} and {name!r} differ in case only, which Spark does not tell apart"
            )
        if folded in reserved:
            raise SinkError(
                f"{owner}: the column name {name!r} is taken: {', '.join(reserved)} are added by eSault; rename it"
            )
        seen[folded] = name


def _of_class(owner: str, record: Record, key: Any, reserved: Sequence[str]) -> Schema:
    """The columns of a class's fields, the key's first."""
    name = record.cls.__name__
    if isinstance(key, Mapping) and len(key) == 1:
        ((first, python),) = key.items()
        if first in record.names:
            raise SinkError(
                f"{owner}: key={key!r} gives a type to {first!r}, a field of {name} that has one; write key={first!r}"
            )
    elif key is None or isinstance(key, str):
        first, python = "key" if key is None else key, str
    else:
        raise SinkError(
            f'{owner}: key must name the key\'s column, as in key="word", or key={{"number": int}} with its type, got {key!r}'
        )
    names = [first, *(field for field in record.names if field != first)]
    _check_names(owner, names, reserved)
    hints = record.annotations()
    columns = [] if first in record.names else [_column(owner, f"column {first!r} has the type", first, python)]
    for field in names[len(columns) :]:
        where = f"{owner}: field {field!r} of {name}"
        if field not in hints:
            raise SinkError(f"{where} has no annotation to say the column's type; add one, such as {field}: str")
        hint = hints[field]
        if isinstance(hint, Unresolved):
            raise SinkError(
                f"{where} is annotated {hint.text!r}, which cannot be resolved ({hint.why}); import or define what it names at "
                "the top of the module, not under TYPE_CHECKING or in a function"
            )
        column = _column(owner, f"field {field!r} of {name} is annotated", field, hint)
        columns.append(Column(field, column.type, column.nullable or field in record.optional))
    return tuple(columns)


def _column(owner: str, what: str, name: str, python: Any) -> Column:
    """One column from its Python type; `what` says in an error whose type that is."""
    kind, nullable = _kind(python)
    if kind is None:
        text = repr(python) if not isinstance(python, type) or typing.get_origin(python) else python.__name__
        raise SinkError(f"{owner}: {what} {text}; possible are {_KNOWN}{_remedy(python)}")
    return Column(name, kind, nullable)


def _kind(python: Any) -> tuple[str | None, bool]:
    """The name in the log, None where there is none, and whether nulls are allowed."""
    origin = typing.get_origin(python)
    arguments = typing.get_args(python)
    if origin in (typing.Union, types.UnionType):
        rest = [argument for argument in arguments if argument is not type(None)]
        kind, nullable = _kind(rest[0]) if len(rest) == 1 else (None, False)
        return kind, nullable or len(rest) < len(arguments)
    if origin is typing.Literal:
        return _common([value for value in arguments if value is not None]), None in arguments
    if origin is typing.Annotated:
        return _kind(arguments[0])
    wrapper = getattr(origin, "_name", None)
    if wrapper in _REQUIRED or wrapper == _NOT_REQUIRED:
        kind, nullable = _kind(arguments[0])
        return kind, nullable or wrapper == _NOT_REQUIRED
    if hasattr(python, "__supertype__"):  # of a NewType
        return _kind(python.__supertype__)
    if not isinstance(python, type) or origin is not None:  # to Python 3.10 list[int] is a type
        return None, False
    if issubclass(python, enum.Enum):
        return _common([member.value for member in python]), False
    if plainer(python) is str:
        return "string", False
    return next((_TYPES[base] for base in python.__mro__ if base in _TYPES), None), False


def _common(values: Sequence[Any]) -> str | None:
    """The type that all these values have."""
    kinds = {_kind(type(value))[0] for value in values}
    return kinds.pop() if len(kinds) == 1 else None


def _remedy(python: Any) -> str:
    """Return what to do instead of a column of many values, if that is what it would be."""
    inner = next((each for each in typing.get_args(python) if each is not type(None)), python)
    several = [typing.get_origin(each) or each for each in (python, inner)]
    if any(
        isinstance(each, type) and (issubclass(each, (list, tuple, dict, set)) or record_of(each)) for each in several
    ):
        return ". A column holds one value: give its parts columns of their own, keep it as JSON in a str, or use JsonLines"
    return ""


def schema_to_json(schema: Schema) -> list[list[Any]]:
    """`[[name, type, nullable], ...]`."""
    return [[column.name, column.type, column.nullable] for column in schema]


def schema_from_json(value: Any) -> Schema:
    """The reverse; ValueError when it is none, or has a type this eSault does not know."""
    schema = []
    for name, kind, nullable in value:
        if kind not in _PYTHON or not isinstance(name, str) or not isinstance(nullable, bool):
            raise ValueError(f"unknown column {name!r}: {kind!r}")
        schema.append(Column(name, kind, nullable))
    return tuple(schema)
