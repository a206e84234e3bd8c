"""Changes of a table's columns that its rows survive, and what stands in their way.

| change | what becomes of rows of before |
|---|---|
| a new column | null in it |
| a column that is no longer declared | as they are; new rows have null |
| `int` to `float` or `Decimal` | widened when they are read; an int beyond 2**53 is no float, and is refused there |
| `T` to `T | None`, or back | as they are; the column allows nulls |

All else is refused, with what would help. Parts are never rewritten for it: each keeps the columns it was written with.
"""

from __future__ import annotations

from esault.sinks.landing.schema import ADDED, UPSERT_ADDED, Column, Schema

__all__ = ["EXACT_FLOAT", "Unfit", "merge", "wider"]

#: beyond this not every whole number is a float
EXACT_FLOAT = 2**53

_WIDER = {("long", "double"): "double", ("long", "decimal(38,18)"): "decimal(38,18)"}


class Unfit(ValueError):
    """Two schemas that no table can have one after the other; says each column, its two types, and the remedy."""


def wider(first: str, second: str) -> str | None:
    """The type that holds the values of both; None when there is none."""
    if first == second:
        return first
    return _WIDER.get((first, second)) or _WIDER.get((second, first))


def merge(table: Schema, wanted: Schema) -> Schema:
    """The columns of a table that gets rows with the `wanted` ones; Unfit when it cannot.

    Columns keep their order, new ones come behind the user's and before those that eSault adds.
    """
    added = {column.name for column in ADDED + UPSERT_ADDED}
    there = {column.name: column for column in table}
    here = {column.name: column for column in wanted}
    said = [f"the table has no column {name!r}" for name in here if name in added and name not in there]
    said += [f"the table's column {name!r} is not declared" for name in there if name in added and name not in here]
    if table and wanted and table[0].name != wanted[0].name:
        said.append(f"its key is {table[0].name!r}, here it is {wanted[0].name!r}")
    folded = {name.casefold(): name for name in there}
    for name in here:
        other = folded.get(name.casefold(), name)
        if other != name:
            said.append(
                f"columns {other!r} there and {name!r} here differ in case only, which Spark does not tell apart"
            )
    for name, column in here.items():
        if name in there and wider(there[name].type, column.type) is None:
            was, now = there[name].python, column.python
            said.append(f"column {name!r} was {was} and is now {now}; declare it as {was}, or give it another name")
    if said:
        raise Unfit("; ".join(said))
    merged = [_both(column, here.get(column.name)) for column in table if column.name not in added]
    merged += [Column(name, column.type, True) for name, column in here.items() if name not in there]
    merged += [column for column in table if column.name in added]
    return tuple(merged)


def _both(table: Column, wanted: Column | None) -> Column:
    if wanted is None:
        return Column(table.name, table.type, True)
    kind = wider(table.type, wanted.type)
    assert kind is not None
    return Column(table.name, kind, table.nullable or wanted.nullable)
