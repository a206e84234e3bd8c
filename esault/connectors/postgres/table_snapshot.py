"""The rows of tables at the moment at which a replication slot begins."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from esault.connectors.postgres.client import connected, connection_options, library, qualified, quoted, table_name
from esault.connectors.postgres.publication import sent
from esault.connectors.postgres.replication import lsn_of
from esault.errors import SourceError

__all__ = ["TableSnapshot"]

#: rows that are asked for at a time
FETCH = 2000


class TableSnapshot:
    """All rows as they were when a slot was made, as the publication sends them. Until it is whole the slot is a temporary one, which
    goes with its connection.

    Raises psycopg.Error where the server goes away: a snapshot cannot be gone on with.
    """

    def __init__(
        self,
        who: str,
        dsn: str,
        slot: str,
        publication: str,
        tables: Sequence[str],
        keys_of: Callable[[Any, str], list[str]],
    ) -> None:
        self._psycopg = psycopg = library(who, SourceError)
        self._slot, self._temporary = slot, f"{slot}_snapshot"
        info = psycopg.conninfo.make_conninfo(dsn, replication="database", **connection_options(psycopg, dsn))
        self._maker = psycopg.pq.PGconn.connect(info.encode())
        self._check_there()
        asked = f'CREATE_REPLICATION_SLOT "{self._temporary}" TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT'
        result = self._maker.exec_(asked.encode())
        if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
            self._check_there()
            text = (result.error_message or self._maker.error_message).decode("utf-8", "replace").strip()
            self._maker.finish()
            raise SourceError(f"{who}: {text}")
        #: changes behind this place are not in the snapshot
        self.lsn: int = lsn_of(result.get_value(0, 1).decode())
        name = result.get_value(0, 2).decode()
        self._reader = connected(psycopg, dsn)
        self._reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        cursor = self._reader.cursor()
        cursor.execute(f"set transaction snapshot '{name}'")
        self._tables = deque((table, keys_of(cursor, table), sent(cursor, publication, table)) for table in tables)
        self._cursor: Any = None

    def _check_there(self) -> None:
        if self._maker.status != self._psycopg.pq.ConnStatus.OK:
            text = self._maker.error_message.decode("utf-8", "replace").strip()
            self._maker.finish()
            raise self._psycopg.OperationalError(text)

    def read(self, limit: int) -> list[tuple[str, Any, dict[str, Any]]]:
        """Return (table, key, row) of the next rows; [] where there are no more."""
        while self._tables:
            table, keys, (columns, condition) = self._tables[0]
            if self._cursor is None:
                self._cursor = self._reader.cursor(name="esault_snapshot")
                self._cursor.itersize = FETCH
                listed = "*" if columns is None else ", ".join(map(quoted, columns))
                where = "" if condition is None else f" where {condition}"
                self._cursor.execute(f"select {listed} from {qualified(table)}{where}")
                self._columns = [column.name for column in self._cursor.description]
            rows = self._cursor.fetchmany(limit)
            if rows:
                found = [dict(zip(self._columns, row)) for row in rows]
                name = table_name(table)[1]
                return [
                    (name, row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys), row) for row in found
                ]
            self._cursor.close()
            self._cursor = None
            self._tables.popleft()
        return []

    def keep_slot(self) -> None:
        """Make a slot that stays, at the place of the temporary one."""
        self._reader.rollback()
        self._reader.execute("select pg_copy_logical_replication_slot(%s, %s, false)", [self._temporary, self._slot])
        self._reader.commit()

    def close(self) -> None:
        """Let go of the connections, and of the temporary slot."""
        if self._cursor is not None:
            with contextlib.suppress(self._psycopg.Error):  # the server is gone, and the cursor with it
                self._cursor.close()
        self._reader.close()
        self._maker.finish()
