"""Changes of a Delta table, made in the process that commits. This module and `commit_process` alone know deltalake.

A commit first looks whether the table has its transactions: `app_transactions` say of each run up to which checkpoint it
has written, and delta-rs refuses a repeated one only where two write at once. Then staged parts are renamed to where
they belong, the library adds the entry to the log, and the entry is made durable: the library links it without fsync.
Each step may be interrupted and come again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from esault.errors import SinkError
from esault.sinks.delta.description import check_version, described
from esault.sinks.delta.entries import Entries
from esault.sinks.delta.part import staging
from esault.sinks.landing.disk import LocalDisk

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["DeltaCommits"]

#: times that a commit is tried anew because another writer was faster
_TRIES = 20
#: seconds before the second try; each further one waits a little longer
_WAIT = 0.05
_logger = logging.getLogger(__name__)


class DeltaCommits:
    """One table by its path. Raises SinkError, naming the table and the remedy."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._disk = LocalDisk()
        self._entries = Entries(self.path, self._disk)
        self._table: DeltaTable | None = None

    def look(self) -> dict[str, Any] | None:
        """The table's columns and what else a writer must know; None when there is no table."""
        check_version()
        table = self._latest()
        return None if table is None else described(table)

    def create(self, columns: Sequence[Sequence[Any]], partition_by: Sequence[str], replace: bool) -> None:
        """There is an empty table with these columns; what was there is gone where `replace`, else it stays."""
        from deltalake import DeltaTable

        DeltaTable.create(
            self.path, _schema(columns), mode="overwrite" if replace else "ignore", partition_by=list(partition_by)
        )
        self._table = None
        self._latest()

    def add_columns(self, columns: Sequence[Sequence[Any]]) -> None:
        """The table has these columns, too; null in the rows that are there."""
        table = self._latest()
        assert table is not None
        there = {field.name for field in table.schema().fields}
        new = [field for field in _schema(columns).fields if field.name not in there]
        if new:
            table.alter.add_columns(new)
            self._table = None
            self._latest()

    def commit(
        self,
        epoch: int,
        handles: Sequence[Mapping[str, Any]],
        columns: Sequence[Sequence[Any]],
        partition_by: Sequence[str],
        primary_key: Sequence[str],
    ) -> int | None:
        """The parts that the handles name are in the table, as one version; return it, None where they were already.

        With `primary_key` their rows are merged into the table by it.
        """
        from deltalake.exceptions import CommitFailedError

        for tried in range(_TRIES):
            table = self._latest()
            if table is None:
                raise SinkError(f"Delta table {self.path} is gone, while it is written. Was it removed?")
            # on Spark they are counted from 0
            done = {one["app"]: table.transaction_version(one["app"]) for one in handles}
            todo = [one for one in handles if (last := done[one["app"]]) is None or last < epoch]
            if not todo:
                self._unstage(handles)
                return None
            self._check(table, columns, partition_by)
            try:
                if primary_key:
                    self._merge(table, epoch, todo, [name for name, *_ in columns], primary_key)
                else:
                    self._append(table, epoch, todo)
            except CommitFailedError as error:
                # another writer was faster, or this commit was done by a process that is gone: what holds is in the log
                if tried + 1 == _TRIES:
                    raise SinkError(
                        f"Delta table {self.path}: other writers were faster {_TRIES} times ({error}). Let fewer write "
                        "at once, or make checkpoints less often"
                    ) from None
                _logger.info("%s: another writer was faster: %s", self.path, error)
                self._table = None
                time.sleep(_WAIT * (tried + 1))
                continue
            self._unstage(todo)
            table = self._latest()
            assert table is not None
            return int(table.version())
        raise AssertionError

    def _append(self, table: DeltaTable, epoch: int, handles: Sequence[Mapping[str, Any]]) -> None:
        from deltalake.transaction import AddAction

        actions = []
        folders = set()
        for one in handles:
            for part in one["parts"]:
                staged, path = self._paths(one, part)
                folders.add(self._place(staged, path, part))
                within = os.path.relpath(path, self.path)
                now = int(time.time() * 1000)
                actions.append(AddAction(within, part["bytes"], part["partition"], now, True, part["stats"]))
        for folder in folders:
            self._disk.sync_folder(folder)
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            list(table.metadata().partition_columns),
            commit_properties=_properties(epoch, handles),
        )

    def _merge(
        self,
        table: DeltaTable,
        epoch: int,
        handles: Sequence[Mapping[str, Any]],
        columns: Sequence[str],
        key: Sequence[str],
    ) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from esault.sinks.landing.merge import newest_of_each

        pieces = []
        for one in handles:
            for part in one["parts"]:
                staged, _ = self._paths(one, part)
                try:
                    with pq.ParquetFile(staged) as file:
                        pieces.append(file.read())
                except FileNotFoundError:
                    raise self._gone(part) from None
        rows = newest_of_each(pa.concat_tables(pieces), key)
        same = " AND ".join(f"t.{_quoted(name)} = s.{_quoted(name)}" for name in key)
        every = {_quoted(name): f"s.{_quoted(name)}" for name in columns}
        merging = table.merge(
            rows, same, source_alias="s", target_alias="t", commit_properties=_properties(epoch, handles)
        )
        merging = merging.when_matched_delete("s.`_deleted`").when_matched_update(every)
        merging.when_not_matched_insert(every, predicate="NOT s.`_deleted`").execute()

    def _paths(self, handle: Mapping[str, Any], part: Mapping[str, Any]) -> tuple[str, str]:
        """The path at which a part is staged, and the one where it belongs."""
        staged = os.path.join(staging(self.path, handle["lineage"]), part["name"])
        return staged, os.path.join(self.path, part["folder"], part["name"])

    def _place(self, staged: str, path: str, part: Mapping[str, Any]) -> str:
        """Give a part its last name, unless it has it; return its folder."""
        folder = os.path.dirname(path)
        try:
            if not os.path.isdir(folder):
                os.makedirs(folder, exist_ok=True)
                above = folder
                while above != self.path:
                    above = os.path.dirname(above)
                    self._disk.sync_folder(above)
            os.rename(staged, path)
        except FileNotFoundError:
            if not os.path.exists(path):
                raise self._gone(part) from None
        return folder

    def _gone(self, part: Mapping[str, Any]) -> SinkError:
        return SinkError(
            f"Delta table {self.path}: {part['name']}, {part['rows']} rows that wait for their commit, is gone. All hosts "
            "must see the table's folder, and no other program may remove files in it. Begin the run anew with --restart"
        )

    def _unstage(self, handles: Iterable[Mapping[str, Any]]) -> None:
        """Remove parts that are still staged, though their rows are in the table: merged ones are."""
        for one in handles:
            for part in one["parts"]:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._paths(one, part)[0])

    def forget(self, lineage: str) -> None:
        """Remove all that a lineage has staged."""
        shutil.rmtree(staging(self.path, lineage), ignore_errors=True)

    def _check(self, table: DeltaTable, columns: Sequence[Sequence[Any]], partition_by: Sequence[str]) -> None:
        """Raise SinkError where the table has changed, so that rows do not fit any more."""
        there = {field.name: getattr(field.type, "type", None) for field in table.schema().fields}
        lost = [name for name, kind, *_ in columns if there.get(name) != kind]
        if lost or list(table.metadata().partition_columns) != list(partition_by):
            raise SinkError(
                f"Delta table {self.path} has other columns or partitions than when this run began"
                f"{': ' + ', '.join(lost) if lost else ''}. It was replaced meanwhile; begin the run anew"
            )

    def _latest(self) -> DeltaTable | None:
        """The table as it is now, with a log that is durable; None when there is none."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            if self._table is None:
                self._table = DeltaTable(self.path)
            else:
                self._table.update_incremental()
        except TableNotFoundError:
            return None
        except Exception as error:
            self._table = None
            raise self._entries.explained(error) from error
        self._entries.sync(self._table.version())
        return self._table


def _schema(columns: Sequence[Sequence[Any]]) -> Any:
    from deltalake import Field, Schema
    from deltalake.schema import PrimitiveType

    return Schema([Field(name, PrimitiveType(kind), nullable) for name, kind, nullable in columns])


def _properties(epoch: int, handles: Iterable[Mapping[str, Any]]) -> Any:
    """The facts that a commit says of itself: of each run that prepared it, the checkpoint up to which all of it is in the table."""
    from deltalake import CommitProperties, Transaction

    apps = sorted({one["app"] for one in handles})
    return CommitProperties(
        custom_metadata={"esault": f"checkpoint {epoch}"},
        app_transactions=[Transaction(app, epoch, int(time.time() * 1000)) for app in apps],
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
