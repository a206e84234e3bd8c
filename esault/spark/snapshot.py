"""A committed version of a table as a folder of hard links to its parts, and the query that reads it with Spark alone.

A link keeps the part from vacuum's hands; a folder that is renamed into its place is there whole or not at all.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass

from esault.sinks.landing.disk import LocalDisk, explained
from esault.sinks.landing.entry import Part
from esault.sinks.landing.evolve import EXACT_FLOAT
from esault.sinks.landing.schema import ADDED, Schema
from esault.sinks.landing.state import TableState
from esault.spark.table import part_schema, quoted, spark_type, uri

__all__ = ["Snapshots", "literal"]

_FOLDER = "_esault_catalog"
#: seconds for which a snapshot stays that no view shows any more
_KEEP = 86400.0


@dataclass(frozen=True)
class _Set:
    """Parts with the same columns."""

    schema: Schema
    parts: tuple[Part, ...]


class Snapshots:
    """The snapshots of the table in `folder` that the view `name` shows, or has shown."""

    def __init__(self, folder: str, name: str) -> None:
        self._table = folder
        self._folder = os.path.join(folder, _FOLDER, name)
        self._disk = LocalDisk()

    def query(self, state: TableState) -> str:
        """Make the snapshot of a state, unless it is there; return the query that reads it. SinkError: the disk refuses, or a part is gone."""
        sets = self._sets(state)
        snapshot = os.path.join(self._folder, str(state.version))
        if not os.path.isdir(snapshot):
            self._link(snapshot, sets)
        return _query(state, snapshot, [one.schema for one in sets])

    def forget(self, before: str | None, now: str) -> None:
        """Remove snapshots that have not been shown for a day. That of version `before` is shown no more, `now` is."""
        for entry in list(os.scandir(self._folder)):
            if entry.name == now:
                continue
            if entry.name == before:
                os.utime(entry.path)
            elif entry.stat().st_mtime < time.time() - _KEEP:
                shutil.rmtree(entry.path, ignore_errors=True)

    def _sets(self, state: TableState) -> list[_Set]:
        assert state.files is not None
        sets: dict[Schema, list[Part]] = {}
        for part in state.files.values():
            path = os.path.join(self._table, part.path)
            sets.setdefault(part_schema(path, state.schema) if state.evolved else state.schema, []).append(part)
        return [_Set(schema, tuple(parts)) for schema, parts in sets.items()]

    def _link(self, snapshot: str, sets: Sequence[_Set]) -> None:
        scratch = f"{snapshot}.{os.urandom(4).hex()}.tmp"
        with explained("writing", snapshot):
            try:
                self._disk.make_folder(scratch)
                for number, one in enumerate(sets):
                    place = os.path.join(scratch, str(number))
                    self._disk.make_folder(place)
                    for part in one.parts:
                        linked = os.path.join(place, os.path.basename(part.path))
                        self._disk.link(os.path.join(self._table, part.path), linked)
                os.rename(scratch, snapshot)
            except BaseException:
                shutil.rmtree(scratch, ignore_errors=True)
                raise


def _query(state: TableState, snapshot: str, sets: Sequence[Schema]) -> str:
    """The rows of a snapshot, as `read_table` gives them."""
    columns = ", ".join(quoted(column.name) for column in state.schema)
    selects = [_select(schema, state.schema, os.path.join(snapshot, str(n))) for n, schema in enumerate(sets)]
    if not selects:
        nulls = (f"CAST(NULL AS {spark_type(c.type).simpleString()}) AS {quoted(c.name)}" for c in state.schema)
        selects = [f"SELECT {', '.join(nulls)} WHERE false"]
    rows = " UNION ALL ".join(selects)
    if state.primary_key:
        keys = ", ".join(map(quoted, state.primary_key))
        kept = ", ".join(f"_row.{quoted(c.name)}" for c in state.schema if c.name != "_deleted")
        newest = f"SELECT max_by(struct({columns}), _updated) AS _row FROM ({rows}) GROUP BY {keys}"
        return f"SELECT {kept} FROM ({newest}) WHERE NOT _row._deleted"
    if state.distinct or not {column.name for column in ADDED} <= {column.name for column in state.schema}:
        return rows
    place = "row_number() OVER (PARTITION BY _run, _id ORDER BY _time) AS _place"
    first = f"SELECT {columns} FROM (SELECT *, {place} FROM ({rows}) WHERE _id IS NOT NULL) WHERE _place = 1"
    return f"{first} UNION ALL SELECT {columns} FROM ({rows}) WHERE _id IS NULL"


def _select(there: Schema, schema: Schema, folder: str) -> str:
    """The rows of one folder of a snapshot with the columns of the table."""
    kinds = {column.name: column.type for column in there}
    values = []
    for column in schema:
        name, kind = quoted(column.name), spark_type(column.type).simpleString()
        if column.name not in kinds:
            value = f"CAST(NULL AS {kind})"
        elif kinds[column.name] == column.type:
            value = name
        elif column.type == "double":
            why = f"column {column.name!r} was widened from int to float, and a number of it is none of the floats"
            fits = f"{name} IS NULL OR abs(CAST({name} AS decimal(20,0))) <= {EXACT_FLOAT}"
            value = f"CASE WHEN {fits} THEN CAST({name} AS {kind}) ELSE CAST(raise_error({literal(why)}) AS {kind}) END"
        else:
            value = f"CAST({name} AS {kind})"
        values.append(value if value == name else f"{value} AS {name}")
    return f"SELECT {', '.join(values)} FROM parquet.{quoted(uri(folder))}"


def literal(value: str) -> str:
    """Return the text as a literal of Spark SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
