"""The columns of a table: what was promised of them, and how they may change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from esault.errors import UsageError
from esault.sinks.landing.evolve import Unfit, merge
from esault.sinks.landing.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["check_contract", "evolved"]


def check_contract(table: str, promised: str | None, there: StructType) -> None:
    """UsageError when the columns are not those that `schema` promises; their order does not matter."""
    if promised is None:
        return
    from pyspark.errors import PySparkException
    from pyspark.sql import types

    try:
        wanted = types.StructType.fromDDL(promised)
    except PySparkException as error:
        raise UsageError(f"table {table}: schema {promised!r} is no list of columns and types: {error}") from None
    if never := [field.name for field in wanted.fields if not field.nullable]:
        raise UsageError(
            f"table {table}: schema={promised!r} says NOT NULL of {never[0]!r}, and is of columns and their types alone; say it as "
            f'expect_all_or_fail={{"a {never[0]}": "{never[0]} IS NOT NULL"}}, or another of expect_all'
        )
    made = {field.name: field.dataType.simpleString() for field in there.fields}
    said = []
    for field in wanted.fields:
        kind = field.dataType.simpleString()
        if field.name not in made:
            said.append(f"column {field.name!r} ({kind}) is missing")
        elif made[field.name] != kind:
            said.append(f"column {field.name!r} is {made[field.name]}, not {kind}")
    names = {field.name for field in wanted.fields}
    said += [f"column {name!r} ({kind}) is not in it" for name, kind in made.items() if name not in names]
    if said:
        raise UsageError(f"table {table} breaks its contract, schema={promised!r}: {'; '.join(said)}")


def evolved(table: str, before: Schema, schema: Schema, change: str) -> Schema:
    """The columns of a table that gets rows with the columns `schema`. UsageError where it cannot, or must not."""
    try:
        merged = merge(before, schema) if before else schema
    except Unfit as unfit:
        raise UsageError(f"table {table}: {unfit}. `esault analyze --full --job table:{table}` makes it anew") from None
    if change == "fail" and before and merged != before:
        was = {column.name: column.python for column in before}
        new = ", ".join(f"{c.name} ({c.python})" for c in merged if was.get(c.name) != c.python)
        raise UsageError(
            f'table {table}: its columns change, and on_schema_change is "fail": {new}. Take the change with '
            f'"append_new_columns", or `esault analyze --full --job table:{table}`'
        )
    return merged
