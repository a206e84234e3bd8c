"""Constraints of a sink's table, asked about rows that are staged: a row that breaks one would break each commit anew.

What follows from rows of others is not asked: foreign keys, triggers, and of an upsert any other unique index than its primary key's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esault.connectors.postgres.client import library, quoted
from esault.errors import SinkError

__all__ = ["Constraints"]

_CHECKS = """
select conname, pg_get_expr(conbin, conrelid), array(select attname::text from pg_attribute where attrelid = conrelid and attnum = any(conkey))
from pg_constraint where conrelid = to_regclass(%s) and contype = 'c'
"""
#: those whose columns, and no expressions, say which rows are alike
_UNIQUE = """
select array(select attname::text from pg_attribute where attrelid = indrelid and attnum = any(indkey) order by attnum)
from pg_index where indrelid = to_regclass(%s) and indisunique and indpred is null and indexprs is null
and not exists (select from pg_constraint where conindid = indexrelid and condeferrable)
"""


class Constraints:
    """Those of `table`, for rows in `staging` with these columns, the first the tuple's key. `name` is the table's for messages."""

    def __init__(self, name: str, table: str, staging: str, columns: Sequence[str], appends: bool) -> None:
        self._who = f"PostgresSink({name!r})"
        self._table, self._staging, self._columns, self._appends = table, staging, columns, appends

    def guard(self, cursor: Any) -> None:
        """Give the staging table the unique indexes of the table: rows of sub-units that stage at once find each other by them."""
        psycopg = library(self._who, SinkError)
        for columns in self._unique(cursor):
            listed = ", ".join(map(quoted, columns))
            cursor.execute(_UNIQUE, [self._staging])
            if columns in [found for (found,) in cursor.fetchall()]:
                continue
            try:
                with cursor.connection.transaction():
                    cursor.execute(f"create unique index on {self._staging} ({listed})")
            except psycopg.errors.UniqueViolation:
                continue  # rows that an earlier version has staged; the commit will say

    def not_null(self, cursor: Any) -> frozenset[str]:
        """Return the columns that hold no null."""
        asked = "select attname from pg_attribute where attrelid = to_regclass(%s) and attnotnull and attname = any(%s)"
        cursor.execute(asked, [self._table, list(self._columns)])
        return frozenset(name for (name,) in cursor.fetchall())

    def refuse(self, cursor: Any, handle: str) -> None:
        """Raise SinkError where a row that is staged under this handle breaks a constraint."""
        key = quoted(self._columns[0])
        for name, condition in self._checks(cursor):
            # As the server has it: what is neither true nor false is let pass.
            cursor.execute(
                f"select s.{key} from {self._staging} as s where _esault_handle = %s and not _esault_gone and ({_plain(condition)}) is false limit 1",
                [handle],
            )
            if (row := cursor.fetchone()) is not None:
                raise SinkError(
                    f"{self._who}: the row of key {row[0]!r} breaks the constraint {name!r} of the table: {condition}; correct the row or the "
                    "constraint"
                )
        for columns in self._unique(cursor):
            same = " and ".join(f"t.{quoted(each)} = s.{quoted(each)}" for each in columns)
            cursor.execute(
                f"select s.{key} from {self._staging} as s join {self._table} as t on {_plain(same)} where s._esault_handle = %s limit 1",
                [handle],
            )
            if (row := cursor.fetchone()) is not None:
                raise self.taken(columns, f"that of key {row[0]!r} is there already")

    def taken(self, columns: Sequence[str], said: str) -> SinkError:
        """Return the error for a second row of what the table holds once."""
        return SinkError(
            f"{self._who}: the table holds one row for each {', '.join(columns)}, and {said}; leave repeats out, or replace rows: primary_key="
        )

    def _checks(self, cursor: Any) -> Sequence[tuple[str, str]]:
        """Return name and condition of those that ask only for columns that are written: others have their default."""
        cursor.execute(_CHECKS, [self._table])
        return [
            (name, condition) for name, condition, columns in cursor.fetchall() if set(columns) <= set(self._columns)
        ]

    def _unique(self, cursor: Any) -> Sequence[list[str]]:
        """Return the columns of each unique index that a row which is appended can break."""
        if not self._appends:
            return []
        cursor.execute(_UNIQUE, [self._table])
        return [columns for (columns,) in cursor.fetchall() if columns and set(columns) <= set(self._columns)]


def _plain(sql: str) -> str:
    """Return a part of a statement in which no values are to be put."""
    return sql.replace("%", "%%")
