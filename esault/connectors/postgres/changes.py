"""Changes of tables of PostgreSQL as a source: change data capture.

It is one module of over 300 lines: the source is a snapshot and then a stream, and its position spans both.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from esault.answer_watch import SILENT_AFTER
from esault.connectors.postgres import pgoutput
from esault.connectors.postgres.client import Client, library, passes, qualified, quoted, table_name
from esault.connectors.postgres.odd_dates import reader
from esault.connectors.postgres.pgoutput import UNCHANGED, Begin, Change, Commit, Decoder, Truncate
from esault.connectors.postgres.publication import (
    check_identity,
    check_keys,
    check_publication,
    make_publication,
)
from esault.connectors.postgres.replication import Replication, lsn_of, lsn_text
from esault.connectors.postgres.table_snapshot import TableSnapshot
from esault.errors import CheckpointError, SourceError, TopologyError
from esault.topology.arguments import listed
from esault.topology.context import Context
from esault.topology.error_policy import Backoff
from esault.topology.spout import EndOfStream, Spout

__all__ = ["PostgresChanges"]

T = TypeVar("T")
#: seconds between two words to the server that this side is still there
ALIVE_EVERY = 10.0
#: waits while the server is away; the longest holds up checkpoints, too
_AGAIN = Backoff(most=1.0)


class PostgresChanges(Spout[Any, Any]):
    """The rows of tables of PostgreSQL and then each change of them; needs `esault[postgres]`.

    `tables` are names ("orders", "shop.orders"), each with a primary key. A tuple's key is the primary key: the value of its column, or a
    tuple where it has several. The value is the row as a dict, or None where it was removed: as `join_table` and upsert sinks take it.
    A row whose primary key changes is removed under the old key, and inserted under the new. With `metadata=True` the value is a dict of "kind" ("snapshot", "insert",
    "update", "delete"), "table", "row" (None where it was removed), "old" (what the server sent of the old row) and "time" (of the commit,
    seconds since the epoch).

    First come all rows as they are, in one consistent snapshot, then what is committed behind it, transaction by transaction in the order of
    their commits. `snapshot="never"` begins with what is committed from now on, or where the slot stands. The server keeps its log for
    `slot` until a checkpoint is complete, so a slot that no run reads any more must be dropped:
    `select pg_drop_replication_slot('...')`. `publication` says what is sent; without, one of the slot's name is made.

    No checkpoint is complete before the snapshot is: a crash during it begins it anew. `until="now"` ends with what was committed when
    it began. A server that is away is waited for, `patience` seconds at most.
    """

    delivery_guarantee: ClassVar[str] = "with checkpoints each change counts once: the slot moves with them"
    extra: ClassVar[str] = "postgres"

    def __init__(
        self,
        dsn: str,
        tables: str | Sequence[str],
        *,
        slot: str,
        publication: str | None = None,
        snapshot: str = "initial",
        metadata: bool = False,
        until: str | None = None,
        patience: float = 300.0,
    ) -> None:
        names = listed(tables)
        if not names or not all(isinstance(name, str) and table_name(name)[1] and "%" not in name for name in names):
            raise TopologyError(f"PostgresChanges: tables={tables!r}: write the names of tables")
        if not isinstance(slot, str) or not slot or not all(c in "abcdefghijklmnopqrstuvwxyz0123456789_" for c in slot):
            raise TopologyError(f"PostgresChanges: slot={slot!r}: a slot's name has letters a-z, digits and _")
        if snapshot not in ("initial", "never"):
            raise TopologyError(f'PostgresChanges: snapshot={snapshot!r}: write "initial" or "never"')
        if until not in (None, "now"):
            raise TopologyError(f'PostgresChanges: until={until!r}: write "now", or leave it out')
        self.dsn, self.tables, self.slot = dsn, names, slot
        self.publication = publication or slot
        self._own_publication = publication is None
        self._snapshot, self._metadata, self._until, self._patience = snapshot, metadata, until, patience
        self._who = f"PostgresChanges({', '.join(names)})"
        self._client = Client(self._who, SourceError, dsn, patience)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._sought: tuple[int, int] | None = None
        #: rows that were decoded and not handed out, each with its transaction's number of it
        self._waiting: deque[tuple[Any, Any]] = deque()
        #: behind the last transaction of which all was handed out, and how many rows of the next one were
        self._lsn, self._rows = 0, 0
        #: of the transaction that is decoded: rows to be left out, since they were handed out before; its end, once it is there
        self._skip = 0
        self._end: int | None = None
        self._time, self._inside = 0.0, False
        self._stop_at: int | None = None
        self._begun = False
        self._stream: Replication | None = None
        self._decoder: Decoder | None = None
        self._reader: TableSnapshot | None = None
        self._read_rows = 0
        #: columns of primary keys, by the table's number
        self._key_columns: dict[int, list[str]] = {}
        self._confirmed = 0
        self._alive_at = 0.0
        self._away_since: float | None = None
        self._tries = 0
        #: a server that stands still was said
        self._silent = False

    # before a run --------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises SourceError where no server answers, it does not log what is needed, or a table is missing or has no primary key."""
        try:
            self._client.once(self._check)
        finally:
            self._client.close()

    def _check(self, cursor: Any) -> None:
        cursor.execute(
            "select current_setting('wal_level'), rolreplication or rolsuper from pg_roles where rolname = current_user"
        )
        level, may = cursor.fetchone()
        if level != "logical":
            raise SourceError(
                f"{self._who}: the server logs too little (wal_level={level}): ALTER SYSTEM SET wal_level = logical, and restart it"
            )
        if not may:
            raise SourceError(f"{self._who}: the user may not read changes: ALTER ROLE ... REPLICATION")
        keys = {table: self._keys_of(cursor, table) for table in self.tables}
        for table, names in keys.items():
            check_identity(cursor, self._who, table, names)
        if not self._own_publication:
            check_publication(cursor, self._who, self.publication, self.tables, own=False)
            for table, names in keys.items():
                check_keys(cursor, self._who, self.publication, table, names)

    def _keys_of(self, cursor: Any, table: str) -> list[str]:
        """Return the columns of a table's primary key. Raises SourceError where there is none."""
        cursor.execute("select to_regclass(%s)::oid", [qualified(table)])
        (found,) = cursor.fetchone()
        if found is None:
            raise SourceError(f"{self._who}: there is no table {table}; make it, or correct tables")
        cursor.execute(
            "select attname from pg_index join pg_attribute on attrelid = indrelid and attnum = any(indkey) "
            "where indrelid = %s and indisprimary order by array_position(indkey::int2[], attnum)",
            [found],
        )
        keys = [name for (name,) in cursor.fetchall()]
        if not keys:
            raise SourceError(
                f"{self._who}: table {table} has no primary key: ALTER TABLE {qualified(table)} ADD PRIMARY KEY (...)"
            )
        return keys

    # reading -------------------------------------------------------------------------------------

    def open(self, context: Context) -> None:
        """Nothing yet: the first read connects."""
        self.context = context
        self._begin_anew()
        self._client = Client(self._who, SourceError, self.dsn, self._patience)

    def seek(self, position: tuple[int, int]) -> None:
        """Go on behind a transaction and so many rows of the next."""
        self._sought = (position[0], position[1])
        self._lsn, self._rows = self._sought

    def position(self) -> tuple[int, int]:
        """Return where the log was handed out up to, and how many rows of the transaction behind it were."""
        return self._lsn, self._rows

    def settle(self) -> None:
        """Before a checkpoint. Raises CheckpointError while the snapshot is read: it could not be gone on with."""
        if self._reader is not None:
            # a run tells the same text once: ten times as many rows are news
            least = min(self._read_rows, 10 ** (len(str(self._read_rows)) - 1))
            raise CheckpointError(
                f"{self._who}: the snapshot of its tables is being read (at least {least:,} rows so far); checkpoints come behind it"
            )

    def commit(self, position: tuple[int, int]) -> None:
        """Let the server forget what is before a position."""
        self._confirmed = max(self._confirmed, position[0])
        if self._stream is not None:
            self._guarded(lambda stream: stream.confirm(self._confirmed))

    def read(self, limit: int) -> list[tuple[Any, Any]]:
        """Return rows of the snapshot, then changes; [] where nothing was committed."""
        if not self._begun:
            self._begin()
        if self._reader is not None:
            rows = self._read_snapshot(limit)
            if rows:
                return rows
        if not self._waiting:
            self._receive(limit)
        found: list[tuple[Any, Any]] = []
        while self._waiting and len(found) < limit:
            found.append(self._waiting.popleft())
        self._rows += len(found)
        self._settle_transaction()
        if not found and not self._waiting and self._stop_at is not None and self._lsn >= self._stop_at:
            raise EndOfStream
        return found

    def caught_up(self) -> bool:
        """Return whether the snapshot has been read, where there is one, and nothing waits behind it."""
        return self._begun and self._reader is None and not self._waiting

    def _settle_transaction(self) -> None:
        if not self._waiting and self._end is not None:
            self._lsn, self._rows, self._skip, self._end = self._end, 0, 0, None

    def _begin(self) -> None:
        psycopg = library(self._who, SourceError)
        self._decoder = Decoder(reader(psycopg))
        if self._sought is None:
            self._lsn, self._rows = self._from_the_beginning(), 0
        else:
            self._client.run(self._check_slot)
        if self._until == "now":
            self._stop_at = self._client.run(self._now)
        self._begun = True

    def _now(self, cursor: Any) -> int:
        # A keepalive says it once all before it is sent, also where that has nothing of these tables.
        cursor.execute("select pg_current_wal_lsn()::text")
        return lsn_of(cursor.fetchone()[0])

    def _from_the_beginning(self) -> int:
        """Make publication and slot, and the snapshot that belongs to it; return where changes begin."""
        # Each in a transaction of its own: a slot waits for the end of all that have written.
        missed = self._client.run(self._make_publication)
        there = self._client.run(self._free_slot)
        if self._snapshot == "never":
            if missed and there is not None:
                self._say(f"had no changes of {', '.join(missed)} until now: the publication did not send them")
            return self._client.run(self._make_slot) if there is None else there
        if there is not None:  # a run before this one had it: this one begins anew
            self._client.run(self._drop_slot)
        self._reader = self._of_snapshot(
            lambda: TableSnapshot(self._who, self.dsn, self.slot, self.publication, self.tables, self._keys_of)
        )
        return self._reader.lsn

    def _make_publication(self, cursor: Any) -> list[str]:
        return make_publication(cursor, self._who, self.publication, self.tables, self._own_publication)

    def _free_slot(self, cursor: Any) -> int | None:
        """Return where the slot stands; None: there is none. Raises SourceError where another process reads it."""
        asked = "select active_pid, confirmed_flush_lsn::text from pg_replication_slots where slot_name = %s"
        cursor.execute(asked, [self.slot])
        there = cursor.fetchone()
        if there is not None and there[0] is not None:
            raise SourceError(
                f"{self._who}: slot {self.slot!r} is being read by process {there[0]} of the server: end that reader, or "
                "take another slot"
            )
        return None if there is None else lsn_of(there[1])

    def _make_slot(self, cursor: Any) -> int:
        cursor.execute("select lsn::text from pg_create_logical_replication_slot(%s, 'pgoutput')", [self.slot])
        return lsn_of(cursor.fetchone()[0])

    def _drop_slot(self, cursor: Any) -> None:
        cursor.execute("select pg_drop_replication_slot(%s)", [self.slot])

    def _read_snapshot(self, limit: int) -> list[tuple[Any, Any]]:
        reader = self._reader
        assert reader is not None
        rows = self._of_snapshot(lambda: reader.read(limit))
        if rows:
            self._read_rows += len(rows)
            return [(key, self._value("snapshot", table, row, None, 0.0)) for table, key, row in rows]
        self._of_snapshot(reader.keep_slot)
        reader.close()
        self._reader = None
        return []

    def _of_snapshot(self, work: Callable[[], T]) -> T:
        """Return `work()`. Raises SourceError; where the server went away one that passes: the snapshot begins anew."""
        psycopg = library(self._who, SourceError)
        try:
            return work()
        except psycopg.Error as error:
            text = str(error).strip()
            if not passes(psycopg, error):
                raise SourceError(f"{self._who}: {text}") from error
            said = SourceError(
                f"{self._who}: the server went away while the snapshot of the tables was read, which begins anew: {text}"
            )
            raise said from ConnectionError(text)

    def _check_slot(self, cursor: Any) -> None:
        cursor.execute(
            "select confirmed_flush_lsn::text, wal_status from pg_replication_slots where slot_name = %s", [self.slot]
        )
        there = cursor.fetchone()
        if there is None or there[0] is None or there[1] == "lost":
            raise SourceError(
                f"{self._who}: slot {self.slot!r} is gone, and with it the changes behind the checkpoint: begin anew with --restart, which "
                "reads a new snapshot"
            )
        if lsn_of(there[0]) > self._lsn:
            raise SourceError(
                f"{self._who}: slot {self.slot!r} stands at {there[0]}, behind the checkpoint's {lsn_text(self._lsn)}: the changes between "
                "are gone. Begin anew with --restart, which reads a new snapshot"
            )
        check_publication(cursor, self._who, self.publication, self.tables, self._own_publication, goes_on=True)

    # the stream ----------------------------------------------------------------------------------

    def _connect(self) -> None:
        psycopg = library(self._who, SourceError)
        self._skip, self._end = self._rows, None
        self._waiting.clear()
        if self._away_since is not None:  # the slot may have been dropped, or made anew further on
            try:
                self._client.once(self._check_slot)
            except SourceError as error:
                if isinstance(error.__cause__, psycopg.Error):
                    raise error.__cause__ from None
                raise
        self._stream = Replication(psycopg, self.dsn, self.slot, self.publication, self._lsn)
        self._inside = False

    def _guarded(self, work: Callable[[Replication], Any]) -> Any:
        """Use the stream; where it is lost, connect again from where it was handed out."""
        psycopg = library(self._who, SourceError)
        try:
            if self._stream is None:
                self._connect()
            assert self._stream is not None
            found = work(self._stream)
        except psycopg.Error as error:
            if self._stream is not None:
                self._stream.close()
                self._stream = None
            if not passes(psycopg, error):
                raise SourceError(f"{self._who}: {str(error).strip()}") from error
            # also where a reader that was lost still holds the slot, for the server's wal_sender_timeout
            now = time.monotonic()
            if self._away_since is None:
                self._away_since, self._tries = now, 0
                if not self._silent:
                    self._say(f"waits for the server: {str(error).strip().partition(chr(10))[0]}")
            if now - self._away_since > self._patience:
                raise SourceError(f"{self._who}: {str(error).strip()}") from error
            time.sleep(_AGAIN.wait(self._tries, random.random()))
            self._tries += 1
            return None
        if self._away_since is not None:
            self._away_since, self._silent = None, False
            self._say("goes on: the server answers")
        return found

    def _say(self, line: str) -> None:
        self.context.logger.warning("%s %s", self._who, line)

    def _receive(self, limit: int) -> None:
        """Decode messages until there are rows of a whole or of a long transaction, or there is none now."""
        now = time.monotonic()
        if now >= self._alive_at:
            self._alive_at = now + ALIVE_EVERY
            self._guarded(lambda stream: stream.confirm(self._confirmed))
        while len(self._waiting) < limit and self._end is None:
            message = self._guarded(lambda stream: stream.receive())
            self._listen()
            if message is None:
                self._idle()
                return
            self._take(message)

    def _listen(self) -> None:
        """Say where a server that stands still is waited for: its connection stays, and no error tells."""
        silent = 0.0 if self._stream is None else self._stream.silent_for
        if silent >= SILENT_AFTER and not self._silent:
            self._silent = True
            self._say(f"waits for the server: no answer for {SILENT_AFTER:.0f} s")
        elif self._silent and not silent and self._away_since is None:
            self._silent = False
            self._say("goes on: the server answers")

    def _idle(self) -> None:
        """Nothing is there: all that the server has said is handed out, between two transactions."""
        stream = self._stream
        if stream is None:
            return
        if not self._waiting and not self._rows and not self._skip and self._end is None and not self._inside:
            self._lsn = max(self._lsn, stream.server_lsn)
        if stream.is_asked:
            self._guarded(lambda stream: stream.confirm(self._confirmed))

    def _take(self, message: bytes) -> None:
        assert self._decoder is not None
        said = self._decoder.decode(message)
        if isinstance(said, Begin):
            self._inside, self._time = True, said.time
        elif isinstance(said, Commit):
            self._inside, self._end = False, said.end_lsn
            if not self._waiting:
                self._settle_transaction()
        elif isinstance(said, Truncate):
            names = ", ".join(each.name for each in said.relations)
            raise SourceError(
                f"{self._who}: {names} was truncated, which says nothing of single rows: use DELETE, or begin anew with --restart"
            )
        elif isinstance(said, Change):
            for row in self._rows_of(said):
                if self._skip:
                    self._skip -= 1
                else:
                    self._waiting.append(row)

    def _rows_of(self, change: Change) -> list[tuple[Any, Any]]:
        relation = change.relation
        new = pgoutput.whole(change)
        if new is not None and UNCHANGED in new:
            column = relation.columns[new.index(UNCHANGED)]
            name = f"{quoted(relation.schema)}.{quoted(relation.name)}"
            raise SourceError(
                f"{self._who}: the server did not send column {column!r} of {relation.name}, which is large and did not change: "
                f"ALTER TABLE {name} REPLICA IDENTITY FULL"
            )
        found = []
        old = None if change.old is None else dict(zip(relation.columns, change.old))
        before = None if change.old is None else self._key(relation, change.old)
        row = None if new is None else dict(zip(relation.columns, new))
        key = before if new is None else self._key(relation, new)
        kind = change.kind
        if row is not None and before is not None and before != key:
            # two rows, and what there was belongs to the first: a total must not lose it twice
            found.append((before, self._value("delete", relation.name, None, old, self._time)))
            kind, old = "insert", None
        found.append((key, self._value(kind, relation.name, row, old, self._time)))
        return found

    def _key(self, relation: pgoutput.Relation, row: tuple[Any, ...]) -> Any:
        names = self._key_columns.get(relation.id)
        if names is None:
            names = self._key_columns[relation.id] = self._client.run(lambda cursor: self._sent_key(cursor, relation))
        places = [relation.columns.index(name) for name in names]
        return row[places[0]] if len(places) == 1 else tuple(row[place] for place in places)

    def _sent_key(self, cursor: Any, relation: pgoutput.Relation) -> list[str]:
        table = f"{relation.schema}.{relation.name}"
        names = self._keys_of(cursor, table)
        check_identity(cursor, self._who, table, names)
        return names

    def _value(self, kind: str, table: str, row: dict[str, Any] | None, old: Any, at: float) -> Any:
        if not self._metadata:
            return row
        return {"kind": kind, "table": table, "row": row, "old": old, "time": at}

    def close(self) -> None:
        """Hang up. The slot stays: the server keeps its log for the next run."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        self._client.close()
