"""A Delta table that is there, and the rows that a sink has for it: whether they go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from esault.errors import SinkError
from esault.sinks.delta.part import PARTITION_TYPES
from esault.sinks.landing.schema import Schema
from esault.topology.arguments import listed

__all__ = ["Declared", "new_columns", "parse_partitions"]


class Declared(NamedTuple):
    """The table as a sink declares it; `merges`: it may have other columns."""

    path: str
    columns: Schema
    partition_by: tuple[str, ...]
    primary_key: tuple[str, ...]
    merges: bool


def parse_partitions(columns: Schema, partition_by: str | Sequence[str]) -> tuple[str, ...]:
    """The names of the columns that divide a table. Raises SinkError."""
    names = tuple(listed(partition_by))
    there = {column.name: column for column in columns}
    if len(set(names)) < len(names) or len(names) >= len(there):
        raise SinkError(f"DeltaSink: partition_by={partition_by!r} must name some of the columns, once each")
    for name in names:
        if name not in there:
            raise SinkError(
                f"DeltaSink: partition_by names {name!r}, which is no column; the columns are {', '.join(there)}"
            )
        if there[name].type not in PARTITION_TYPES:
            raise SinkError(
                f"DeltaSink: partition_by names {name!r}, a column of {there[name].python}; possible are str, int, bool and "
                "date. Give what divides the table a column of its own, such as the day of a datetime"
            )
    return names


def new_columns(here: Declared, there: Mapping[str, Any]) -> set[str]:
    """The columns that the table has to get; `there` is what `DeltaCommits.look` says. SinkError where it cannot have the rows."""
    named = f"Delta table {here.path}"
    if there["trouble"]:
        said = "; ".join(there["trouble"])
        raise SinkError(f"{named} asks more of its writers than DeltaSink does: {said}. Choose another path")
    if here.primary_key and there["append_only"]:
        raise SinkError(f"{named} takes no changes of rows (delta.appendOnly); leave primary_key out")
    if tuple(there["partition_by"]) != here.partition_by:
        raise SinkError(
            f"{named} is partitioned by {there['partition_by']}, and DeltaSink says {list(here.partition_by)}; say the "
            'same, write to another path, or use mode="replace"'
        )
    had = {name: (kind, nullable) for name, kind, nullable in there["columns"]}
    folded = {name.casefold(): name for name in had}
    differences, new = [], set()
    for column in here.columns:
        other = folded.pop(column.name.casefold(), None)
        if other is None:
            new.add(column.name)
        elif other != column.name:
            differences.append(f"columns {other!r} there and {column.name!r} here differ in case only")
        elif had[other][0] != column.type:
            differences.append(f"column {other!r} is {had[other][0]} there and {column.type} ({column.python}) here")
        elif column.nullable and not had[other][1]:
            differences.append(f"column {other!r} cannot be null there; declare it without None")
    absent = list(folded.values())
    differences += [f"column {name!r} there cannot be null and is not declared" for name in absent if not had[name][1]]
    if not here.merges and (new or absent):
        differences.append(
            f"new here: {', '.join(sorted(new)) or 'none'}; only there: {', '.join(absent) or 'none'} "
            '(schema_mode="merge" adds the first, and leaves the second null)'
        )
    if differences:
        raise SinkError(f"{named} has other columns than DeltaSink declares: {'; '.join(differences)}")
    return new
