"""The SQL of a sink's table and of the staging table beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from esault.connectors.postgres.cells import Cells
from esault.connectors.postgres.client import library, qualified, quoted, table_name
from esault.connectors.postgres.constraints import Constraints
from esault.errors import EsaultError, SinkError

__all__ = ["Statements"]

#: of the staging table, besides the columns: which rows, whose, when they were written, and whether they remove their key
_ADDED = ("_esault_handle text", "_esault_lineage text", "_esault_stamp bigint", "_esault_gone boolean")


#: columns whose types are others in the staging table, or that it lacks
_DIFFERENT = """
select t.attname, format_type(t.atttypid, t.atttypmod), s.attname is not null
from pg_attribute as t left join pg_attribute as s on s.attrelid = to_regclass(%s) and s.attname = t.attname and not s.attisdropped
where t.attrelid = to_regclass(%s) and t.attname = any(%s) and not t.attisdropped
and format_type(t.atttypid, t.atttypmod) is distinct from format_type(s.atttypid, s.atttypmod)
"""


class Statements:
    """`columns` are those of the table that are written, `primary_key` those that a row replaces by; none: rows are appended."""

    def __init__(self, table: str, columns: Sequence[str], primary_key: Sequence[str]) -> None:
        self.primary_key = tuple(primary_key)
        self._columns = list(columns)
        self._name = table
        self.table, self.staging = qualified(table), qualified(f"{table}_esault")
        self._constraints = Constraints(table, self.table, self.staging, self._columns, appends=not primary_key)

    @property
    def _listed(self) -> str:
        return ", ".join(map(quoted, self._columns))

    def check(self, cursor: Any, types: Mapping[str, str], kind: type[EsaultError]) -> None:
        """Raises `kind` where the table is missing and cannot be made, lacks a column, or the index that a primary key needs."""
        cursor.execute("select to_regclass(%s)::oid", [self.table])
        (found,) = cursor.fetchone()
        if found is None:
            schema, _ = table_name(self._name)
            cursor.execute("select to_regnamespace(%s)", [quoted(schema)])
            if schema and cursor.fetchone() == (None,):
                raise kind(
                    f"PostgresSink: there is no schema {schema}: CREATE SCHEMA {quoted(schema)}, or correct table={self._name!r}"
                )
            if not types:
                raise kind(
                    f"PostgresSink: there is no table {self._name}; make it, or have it made: columns={{'word': str, ...}} with types"
                )
            return
        cursor.execute(
            "select attname from pg_attribute where attrelid = %s and attnum > 0 and not attisdropped", [found]
        )
        there = [name for (name,) in cursor.fetchall()]
        if missing := [name for name in self._columns if name not in there]:
            raise kind(f"PostgresSink: table {self._name} has no column {missing[0]!r}; it has: {', '.join(there)}")
        if self.primary_key and not self._has_index(cursor, found):
            names = ", ".join(map(quoted, self.primary_key))
            raise kind(
                f"PostgresSink: primary_key={', '.join(self.primary_key)} needs a unique index: CREATE UNIQUE INDEX ON {self.table} ({names})"
            )

    def _has_index(self, cursor: Any, table: int) -> bool:
        cursor.execute(
            "select array(select attname::text from pg_attribute where attrelid = indrelid and attnum = any(indkey)) from pg_index "
            "where indrelid = %s and indisunique and indpred is null and indexprs is null",
            [table],
        )
        return any(set(names) == set(self.primary_key) for (names,) in cursor.fetchall())

    def make(self, cursor: Any, types: Mapping[str, str], empty: bool) -> None:
        """Make the table where it is missing, and the staging table; `empty`: no row of before stays."""
        cursor.execute("select pg_advisory_xact_lock(hashtext(%s))", [self.staging])  # several begin at once
        if types:
            columns = [f"{quoted(name)} {types[name]}" for name in self._columns]
            if self.primary_key:
                columns.append(f"primary key ({', '.join(map(quoted, self.primary_key))})")
            cursor.execute(f"create table if not exists {self.table} ({', '.join(columns)})")
        cursor.execute("select to_regclass(%s)", [self.staging])
        if cursor.fetchone()[0] is None:
            cursor.execute(f"create table {self.staging} as select {self._listed} from {self.table} with no data")
            for column in _ADDED:
                cursor.execute(f"alter table {self.staging} add column {column}")
            cursor.execute(f"create index on {self.staging} (_esault_handle)")
        else:  # made for a sink with fewer columns, or before a column had another type
            cursor.execute(_DIFFERENT, [self.staging, self.table, self._columns])
            for name, kind, there in cursor.fetchall():
                column = quoted(name)
                how = (
                    f"alter column {column} type {kind} using {column}::{kind}"
                    if there
                    else f"add column {column} {kind}"
                )
                cursor.execute(f"alter table {self.staging} {how}")
        self._constraints.guard(cursor)
        if empty:
            cursor.execute(f"delete from {self.table}")

    def stage(self, cursor: Any, handle: str, lineage: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Copy rows, each with its stamp and whether it removes its key before the cells. The same when it is done twice."""
        cursor.execute(f"delete from {self.staging} where _esault_handle = %s", [handle])
        said = f"_esault_handle, _esault_lineage, _esault_stamp, _esault_gone, {self._listed}"
        psycopg = library(f"PostgresSink({self._name!r})", SinkError)
        required = self._constraints.not_null(cursor)
        cells = Cells(cursor, self._name, self.staging, self._columns)
        try:
            with cursor.copy(f"copy {self.staging} ({said}) from stdin") as copy:
                for row in rows:
                    if None in row and not row[1]:
                        self._refuse(row[2:], required)
                    try:
                        copy.write_row((handle, lineage, *(cells.fit(row) if cells.change else row)))
                    except (psycopg.DataError, UnicodeEncodeError) as error:
                        raise cells.unwritable(error, row) from None
        except psycopg.DataError as error:
            raise cells.refused(error, rows) from error
        except psycopg.errors.UniqueViolation as error:
            columns = (error.diag.message_detail or "").partition("(")[2].partition(")")[0]
            raise self._constraints.taken([columns], f"there are two: {error.diag.message_detail}") from None
        self._constraints.refuse(cursor, handle)

    def _refuse(self, cells: Sequence[Any], required: frozenset[str]) -> None:
        for name, cell in zip(self._columns, cells):
            if cell is None and name in required:
                raise SinkError(
                    f"PostgresSink({self._name!r}): column {name!r} holds no null, and the row of key {cells[0]!r} has none there"
                )

    def move(self, cursor: Any, handles: Sequence[str]) -> None:
        """Move what is staged under these handles, in the order in which it was written; of a primary key the newest row."""
        cursor.execute("select pg_advisory_xact_lock(hashtext(%s))", [self.staging])
        if not self.primary_key:
            cursor.execute(
                f"with moved as (delete from {self.staging} where _esault_handle = any(%s) returning *) "
                f"insert into {self.table} ({self._listed}) select {self._listed} from moved order by _esault_stamp",
                [list(handles)],
            )
            return
        keys = ", ".join(map(quoted, self.primary_key))
        others = [name for name in self._columns if name not in self.primary_key]
        then = f"update set {', '.join(f'{quoted(n)} = excluded.{quoted(n)}' for n in others)}" if others else "nothing"
        newest = (
            f"select distinct on ({keys}) * from {self.staging} where _esault_handle = any(%s) "
            f"order by {keys}, _esault_stamp desc"
        )
        same = " and ".join(f"t.{quoted(name)} = n.{quoted(name)}" for name in self.primary_key)
        given = [list(handles)]
        cursor.execute(f"delete from {self.table} t using ({newest}) n where n._esault_gone and {same}", given)
        cursor.execute(
            f"insert into {self.table} ({self._listed}) select {self._listed} from ({newest}) n where not _esault_gone "
            f"on conflict ({keys}) do {then}",
            given,
        )
        cursor.execute(f"delete from {self.staging} where _esault_handle = any(%s)", given)

    def forget(self, cursor: Any, lineage: str, kept: Sequence[str]) -> None:
        """Remove what a lineage has staged, but for these handles."""
        cursor.execute(
            f"delete from {self.staging} where _esault_lineage = %s and not _esault_handle = any(%s)",
            [lineage, list(kept)],
        )
