"""A table of PostgreSQL as a sink."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import Any, ClassVar

from esault.connectors.postgres.cells import Json
from esault.connectors.postgres.client import Client, table_name
from esault.connectors.postgres.statements import Statements
from esault.errors import SinkError, TopologyError
from esault.payload.scalar import plainer
from esault.sinks.json_row import encode_value
from esault.sinks.landing.values import spread_keys, unfold
from esault.topology.arguments import listed
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo, Sink

__all__ = ["PostgresSink"]

#: epochs in a handle, at most: with checkpoints the engine itself hands on those of a checkpoint that was given up
_MOST_STAGED = 16

#: types of PostgreSQL for those of Python
TYPES: Mapping[Any, str] = {
    str: "text",
    int: "bigint",
    float: "double precision",
    bool: "boolean",
    bytes: "bytea",
    dict: "jsonb",
    list: "jsonb",
    decimal.Decimal: "numeric",
    datetime.datetime: "timestamptz",
    datetime.date: "date",
    uuid.UUID: "uuid",
}


class PostgresSink(Sink):
    """Rows of a table of PostgreSQL: appended, or with `primary_key` the newest of each key; needs `esault[postgres]`.

    `table` is "table" or "schema.table". `columns` names its columns: the first holds the tuple's key, the others what its value has
    (one column: the value; several: a tuple or list of that length, or by name a dict or a record). A mapping of names to types
    (`{"word": str, "total": int}`, or a type of SQL as text) makes a table that is missing.

    With `primary_key` (a column, or several) a row replaces the one with its key; a value of None, or a true `deleted` column, removes it.
    The table needs a unique index on these columns; one that is made here has it.

    Rows are staged in the table `TABLE_esault` beside it with COPY, and moved with the checkpoint, all of one checkpoint in one
    transaction: each row counts once, and readers see whole checkpoints. Without checkpoints rows are moved several times a second, and
    what is replayed after a crash is there twice, unless `primary_key` makes it one.

    `mode="replace"` empties the table when a run begins anew. A server that is away is waited for, `patience` seconds at most.
    """

    delivery_guarantee: ClassVar[str] = "with checkpoints each row is there once; without, what is replayed comes twice"
    extra: ClassVar[str] = "postgres"

    def __init__(
        self,
        dsn: str,
        table: str,
        columns: Sequence[str] | Mapping[str, Any],
        *,
        primary_key: str | Sequence[str] | None = None,
        deleted: str | None = None,
        mode: str = "append",
        patience: float = 300.0,
    ) -> None:
        if not isinstance(table, str) or not table_name(table)[1]:
            raise TopologyError(f"PostgresSink: table={table!r}: write its name, such as 'counts' or 'shop.counts'")
        names = listed(columns)
        if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
            raise TopologyError(f"PostgresSink: columns={columns!r}: write their names, the first for the tuple's key")
        if bad := [name for name in (table, *names) if "%" in name]:
            raise TopologyError(f"PostgresSink: {bad[0]!r}: a name with a % cannot be written here")
        keys = [] if primary_key is None else listed(primary_key)
        if unknown := [name for name in keys if name not in names]:
            raise TopologyError(f"PostgresSink: primary_key={primary_key!r}: {unknown[0]!r} is none of the columns")
        if deleted is not None and not keys:
            raise TopologyError(f"PostgresSink: deleted={deleted!r} removes the row of a key: say primary_key, too")
        if deleted is not None and deleted not in names[1:]:
            raise TopologyError(
                f"PostgresSink: deleted={deleted!r} is none of the value's columns: add it to columns, as bool; it is not stored"
            )
        if mode not in ("append", "replace"):
            raise TopologyError(f'PostgresSink: mode={mode!r}: write "append" or "replace"')
        self.dsn, self.table, self.mode = dsn, table, mode
        self.primary_key = tuple(keys)
        self._names, self._deleted = names, deleted
        self._types = _types(columns) if isinstance(columns, Mapping) else {}
        self._statements = Statements(table, [name for name in names if name != deleted], keys)
        self._client = Client(f"PostgresSink({table!r})", SinkError, dsn, patience)
        self._rows: list[tuple[Any, ...]] = []
        #: names of epochs that were staged and, as far as is known here, not moved
        self._staged: list[str] = []
        self._stamp = 0
        self._thread: ThreadPoolExecutor | None = None
        self._lineage = ""

    # in the driver -------------------------------------------------------------------------------

    def destination(self) -> str:
        """Return where rows go, for people."""
        return f"table {self.table}"

    def check(self) -> None:
        """Raises SinkError where no server answers, the password is wrong, or the table does not fit."""
        try:
            self._client.once(lambda cursor: self._statements.check(cursor, self._types, SinkError))
        finally:
            self._client.close()  # processes are forked from this one

    def begin(self, run: RunInfo) -> None:
        """Make what is missing; with mode="replace" empty the table for a run that begins anew."""
        self._lineage = f"{run.lineage}/{run.unit}"  # two sinks of a run may write one table
        empty = self.mode == "replace" and not run.resumed
        self._client.run(lambda cursor: self._statements.make(cursor, self._types, empty))

    def commit_all(self, epoch: int, handles: Sequence[Any]) -> None:
        """Move the rows of a checkpoint into the table, in one transaction. What has been moved is not there any more."""
        known = [staged for handle in handles for staged in handle or ()]
        if known:
            self._client.run(lambda cursor: self._statements.move(cursor, known))

    def commit(self, epoch: int, handle: Any) -> Future[None] | None:
        """Move the rows of one sub-unit: without checkpoints."""
        if not handle:
            return None
        self._staged = [staged for staged in self._staged if staged not in handle]
        return self._background().submit(
            lambda: self._client.run(lambda cursor: self._statements.move(cursor, list(handle)))
        )

    def forget_staged(self, kept: Sequence[Any] = ()) -> None:
        """Remove what was staged and will never be moved."""
        self._client.run(
            lambda cursor: self._statements.forget(
                cursor, self._lineage, [each for handle in kept for each in handle or ()]
            )
        )

    def end(self, ok: bool) -> None:
        """Let go of the connection."""
        self._client.close()

    # in sub-units --------------------------------------------------------------------------------

    def open(self, context: Context) -> None:
        """Nothing yet: the first rows connect."""
        self.context = context
        self._lineage = f"{context.lineage}/{context.unit}"
        self._rows, self._staged, self._stamp, self._thread = [], [], 0, None

    def write(self, rows: Sequence[Row]) -> None:
        """Keep them until the checkpoint."""
        # A key's rows come from one sub-unit at a time: what is written later is newer, also behind a move of the key.
        first = max(round(self.context.now() * 1e6), self._stamp + 1)
        self._stamp = first + len(rows)
        gone = [row.value is None for row in rows]
        if True in gone and not self._statements.primary_key:
            key = next(row.key for row, none in zip(rows, gone) if none)
            raise SinkError(
                f"PostgresSink({self.table!r}): the value of key {key!r} is None, which deletes a row: that needs primary_key=..."
            )
        owner = f"PostgresSink({self.table!r})"
        keys, values = spread_keys(owner, self._names, [row.key for row in rows], [row.value for row in rows])
        there = [place for place, value in enumerate(values) if value is not None]
        columns = unfold(
            owner, self._names[0], self._names[1:], [values[place] for place in there], [keys[place] for place in there]
        )
        cells = zip(*columns) if columns else iter([()] * len(there))
        flag = self._names.index(self._deleted) - 1 if self._deleted is not None else None
        for stamp, key, value, none in zip(count(first), keys, values, gone):
            others: tuple[Any, ...] = (None,) * (len(self._names) - 1) if value is None else next(cells)
            removes = none
            if flag is not None:
                removes = none or bool(others[flag])
                others = (*others[:flag], *others[flag + 1 :])
            self._rows.append((stamp, removes, *map(_cell, (key, *others))))

    def prepare(self, epoch: int) -> Any:
        """Stage the rows in the background. The handle names them."""
        rows, self._rows = self._rows, []
        if not rows:
            return self._staged or None
        name = str(uuid.uuid4())
        # Epochs that were not committed go with this one. `commit_all` does not tell: what it has moved is not there any more.
        self._staged = [*self._staged, name][-_MOST_STAGED:]
        handle = self._staged

        def stage() -> list[str]:
            self._client.run(lambda cursor: self._statements.stage(cursor, name, self._lineage, rows))
            return handle

        return self._background().submit(stage)

    def close(self) -> None:
        """Let go of the connection; what was not prepared comes again."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
            self._thread = None
        self._client.close()

    def _background(self) -> ThreadPoolExecutor:
        if self._thread is None:  # one: what is prepared later is staged later
            self._thread = ThreadPoolExecutor(1, "esault-postgres")
        return self._thread


def _types(columns: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for name, kind in columns.items():
        if not isinstance(kind, str) and kind not in TYPES:
            known = ", ".join(each.__name__ for each in TYPES)
            raise TopologyError(
                f"PostgresSink: column {name!r} has type {kind!r}: write one of {known}, or a type of SQL as text"
            )
        found[name] = kind if isinstance(kind, str) else TYPES[kind]
    return found


#: types of values that the client writes as they are
_AS_THEY_ARE = frozenset({type(None), *TYPES}) - {dict, list}


def _cell(value: Any) -> Any:
    """Return a value as the client is to write it. Raises SinkError for what has no form in JSON."""
    if type(value) in _AS_THEY_ARE:
        return value
    way = plainer(type(value))
    if way is not None:
        return way(value)
    return Json(encode_value(value).decode()) if isinstance(value, (dict, list, tuple)) else value
