"""The columns of a landed table: from Python types to names that last.

| Python | name in the log | Parquet, Spark |
|---|---|---|
| `str` | string | UTF-8 string |
| `int` | long | 64 bits |
| `float` | double | 64 bits |
| `bool` | boolean | |
| `bytes` | binary | |
| `datetime` | timestamp | microseconds, UTC |
| `date` | date | |
| `Decimal` | decimal(38,18) | exact: 20 digits before the point, 18 after it |

`T | None` and `Optional[T]` allow nulls.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from esault.errors import SinkError

__all__ = ["ADDED", "Column", "Schema", "parse_columns", "schema_from_json", "schema_to_json"]

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


def parse_columns(owner: str, columns: Mapping[str, Any], reserved: Sequence[str] = ()) -> Schema:
    """The schema of `columns={"name": type}`; SinkError, which begins with `owner`, names a wrong one."""
    if not isinstance(columns, Mapping):
        raise SinkError(f'{owner}: columns must be a dict such as {{"word": str, "total": int}}, got {columns!r}')
    if not columns:
        raise SinkError(f'{owner}: columns is empty; the key is the first column, as in {{"word": str, "total": int}}')
    seen: dict[str, str] = {}
    schema = []
    for name, python in columns.items():
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
        schema.append(_column(owner, name, python))
    return tuple(schema)


def _column(owner: str, name: str, python: Any) -> Column:
    """One column from its Python type."""
    nullable = False
    inner = python
    if typing.get_origin(python) in (typing.Union, types.UnionType):
        arguments = typing.get_args(python)
        rest = [argument for argument in arguments if argument is not type(None)]
        nullable = len(rest) < len(arguments)
        inner = rest[0] if len(rest) == 1 else python
    try:
        kind = _TYPES[inner]
    except (KeyError, TypeError):
        known = ", ".join(sorted(_PYTHON.values()))
        raise SinkError(
            f"{owner}: column {name!r} has the type {python!r}; possible are {known}, each also with `| None`"
        ) from None
    return Column(name, kind, nullable)


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
