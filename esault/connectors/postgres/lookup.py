"""A table of PostgreSQL that rows of a stream are looked up in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from esault.connectors.lookup import Lookup
from esault.connectors.postgres.client import Client, library, qualified, quoted, table_name
from esault.errors import SourceError, TopologyError
from esault.topology.arguments import listed

__all__ = ["PostgresLookup"]


class PostgresLookup(Lookup):
    """Rows of a table of PostgreSQL by a key, for `stream.enrich(name, table, of=...)`; needs `esault[postgres]`.

    `table` is "table" or "schema.table"; or `query` is a statement that gives the rows. `key` names its column, or several: then what is
    looked up is a tuple of as many. A row comes as a dict; `columns` chooses from it: a list of names, or one name for its value alone.
    A key that is not there gives None. One that several rows have is an error, since a stream has one place for one row.

    Each process has a cache of `max_rows` keys, in which a row is good for `expire_after_write` seconds (None: for ever), and so is, with
    `cache_missing_key`, that there is none. What it does not have is asked in the background, all keys that wait (`max_batch` at most) in
    one statement, by one connection of the process.

    A server that is away is waited for, `patience` seconds at most; then `on_error` of the unit decides. After a restore a row is looked
    up anew, and may have changed.
    """

    extra: ClassVar[str] = "postgres"

    def __init__(
        self,
        dsn: str,
        table: str | None = None,
        *,
        key: str | Sequence[str],
        query: str | None = None,
        columns: str | Sequence[str] | None = None,
        max_rows: int = 10_000,
        expire_after_write: float | None = 60.0,
        cache_missing_key: bool = True,
        max_batch: int = 1000,
        patience: float = 300.0,
    ) -> None:
        if (table is None) == (query is None):
            raise TopologyError("PostgresLookup: give the name of a table, or query='select ...'")
        if table is not None and (not isinstance(table, str) or not table_name(table)[1]):
            raise TopologyError(
                f"PostgresLookup: table={table!r}: write its name, such as 'customers' or 'shop.customers'"
            )
        who = f"PostgresLookup({'query' if table is None else repr(table)})"
        super().__init__(who, max_rows, expire_after_write, cache_missing_key, max_batch)
        self._source = f"({query.strip().rstrip(';')})" if query is not None else qualified(table or "")
        self._keys = listed(key)
        self._columns = None if columns is None else listed(columns)
        self._one = isinstance(columns, str)
        if not self._keys or not all(isinstance(name, str) and name for name in [*self._keys, *(self._columns or ())]):
            raise TopologyError(f"{who}: key={key!r}, columns={columns!r}: write names of columns")
        self._client = Client(who, SourceError, dsn, patience)
        #: the statement, once the types of the key are known, and the names of what it gives
        self._statement: tuple[str, Sequence[str]] | None = None

    def check(self) -> None:
        """Raises SourceError where no server answers, the password is wrong, or there is no such table or column."""
        try:
            self._client.once(self._described)
        finally:
            self._client.close()  # processes are forked from this one

    def _described(self, cursor: Any) -> tuple[str, Sequence[str]]:
        """Return the statement, and the names of the columns that it gives."""
        psycopg = library(self._who, SourceError)
        try:
            cursor.execute(f"select * from {self._source} as s limit 0")
        except psycopg.errors.UndefinedTable as error:
            raise SourceError(f"{self._who}: {_said(error)}; correct its name, or make it") from None
        except psycopg.errors.SyntaxError as error:
            raise SourceError(f"{self._who}: {_said(error)}; correct query={self._source[1:-1]!r}") from None
        types = {column.name: column.type_code for column in cursor.description}
        names = list(types) if self._columns is None else self._columns
        for name in (*self._keys, *names):
            if name not in types:
                raise SourceError(f"{self._who}: there is no column {name!r}; there are: {', '.join(types)}")
        asked = "select format_type(oid, null) from unnest(%s::oid[]) with ordinality as u(oid, n) order by n"
        cursor.execute(asked, [[types[name] for name in self._keys]])
        kinds = [kind for (kind,) in cursor.fetchall()]
        given = [f"k{n}" for n in range(len(self._keys))]
        same = " and ".join(f"s.{quoted(name)} = k.{each}" for name, each in zip(self._keys, given))
        listed = ", ".join(["k.n", *(f"s.{quoted(name)}" for name in names)])
        rest = f") with ordinality as k({', '.join(given)}, n) join {self._source} as s on {same}"
        keys = ", ".join(f"%s::text[]::{kind}[]" for kind in kinds)
        return f"select {_plain(listed)} from unnest({keys}{_plain(rest)}", names

    def _fetch(self, keys: Sequence[Any]) -> Mapping[Any, Any]:
        rows = {}
        parts = [self._parts(key) for key in keys]
        good = [(key, each) for key, each in zip(keys, parts) if isinstance(each, tuple)]
        found: dict[Any, Any] = {key: each for key, each in zip(keys, parts) if not isinstance(each, tuple)}
        if not good:
            return found
        given = [list(column) for column in zip(*(each for _, each in good))]
        try:
            names, answer = self._client.run(lambda cursor: self._asked(cursor, given))
        except SourceError as error:
            if not isinstance(error.__cause__, library(self._who, SourceError).DataError):
                raise
            if len(good) == 1:  # the server cannot take this key for one of its column
                return {**found, good[0][0]: SourceError(f"{error}; the key is {good[0][0]!r}")}
            for key, _ in good:
                found.update(self._fetch([key]))
            return found
        for number, *row in answer:
            key = good[number - 1][0]
            if key in rows:
                found[key] = SourceError(
                    f"{self._who}: several rows have {', '.join(self._keys)} {key!r}; look up by a key that is unique, or make one row of "
                    "them in query="
                )
            rows[key] = row[0] if self._one else dict(zip(names, row))
        return {**rows, **found}

    def _asked(self, cursor: Any, given: Sequence[Sequence[str]]) -> tuple[Sequence[str], Any]:
        if self._statement is None:
            self._statement = self._described(cursor)
        statement, names = self._statement
        cursor.execute(statement, given)
        return names, cursor.fetchall()

    def _parts(self, key: Any) -> tuple[str, ...] | SourceError | None:
        """Return the key as texts for its columns; None where a part of it is none, which no row has."""
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) != len(self._keys):
            return SourceError(
                f"{self._who}: the key {key!r} has {len(parts)} parts, and the columns are {', '.join(self._keys)}"
            )
        if None in parts:
            return None
        texts = tuple("\\x" + each.hex() if isinstance(each, bytes) else str(each) for each in parts)
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:  # of the client's it would be an error of all keys that are asked for with it
            return SourceError(f"{self._who}: the key {key!r} is no text in UTF-8, so that no row has it")
        return texts

    def _disconnect(self) -> None:
        self._client.close()


def _said(error: Any) -> str:
    return str(error).splitlines()[0]


def _plain(sql: str) -> str:
    """Return a part of a statement in which no values are to be put."""
    return sql.replace("%", "%%")
