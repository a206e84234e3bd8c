"""A table that a job makes of others: parts that Spark writes, and one log entry that shows them and says of what.

Rows and progress are in the same entry, so a job that is killed leaves parts that no reader sees, or has done its step;
there is nothing in between, and it may be started again at any time. One job writes a table at a time (`RunLock`).

Parts lie in folders `column=value` where the table is partitioned. They hold all columns nevertheless: what a reader
gets does not depend on the names of folders, which cannot tell an empty text from null.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from esault.errors import SinkError
from esault.sinks.landing.disk import LocalDisk, explained
from esault.sinks.landing.entry import Entry, Input, Part
from esault.sinks.landing.evolve import merge
from esault.sinks.landing.lock import RunLock
from esault.sinks.landing.log import CommitLog, Conflict, utc
from esault.sinks.landing.schema import Schema
from esault.sinks.landing.state import TableState
from esault.sinks.landing.vacuum import remove_parts, vacuum
from esault.spark.staging import clear, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["RETENTION", "DerivedTable"]

#: seconds after which what was replaced is removed: a day, for readers that are still at it
RETENTION = 86400.0
#: seconds for which a part that no entry names stays in any case: a compaction by another process may be about to show it
_UNSHOWN = 60.0
_STAGING = ".staging-"


class DerivedTable:
    """The table in folder `path`; `retention`: seconds for which files that were replaced stay."""

    def __init__(self, path: str, retention: float = RETENTION) -> None:
        self.path = os.path.abspath(path)
        self._retention = retention
        self._disk = LocalDisk()

    def state(self) -> TableState:
        """As it is; version -1 when there is none. SinkError: it cannot be read."""
        return CommitLog(self.path, self._disk).refresh()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock it against other writers. Raises SinkError: another one writes it, or the disk refuses."""
        log = CommitLog(self.path, self._disk)
        with explained("making", log.folder):
            self._disk.make_folder(log.folder)
        lock = RunLock(self.path)
        lock.acquire("esault analyze")
        try:
            clear(self.path, _STAGING, self._disk)  # of a job that was killed
            yield
        finally:
            lock.release()

    def stage(self, frame: DataFrame, folders: Sequence[str] = ()) -> list[Part]:
        """Have Spark write rows as parts that no reader sees yet.

        `folders`: names of the folders' columns; their values are in the frame's columns `_folder0`, `_folder1`, ...,
        which are not kept. Raises what Spark raises; SinkError when the disk refuses.
        """
        return stage(frame, self.path, self._disk, _STAGING, folders)

    def put(self, data: memoryview, rows: int) -> Part:
        """A part from the bytes of a Parquet file, which no reader sees yet."""
        part = Part(f"part-{os.urandom(16).hex()}.parquet", rows, len(data))
        scratch = os.path.join(self.path, f".{os.urandom(8).hex()}.tmp")
        with explained("writing", self.path):
            self._disk.write_new(scratch, data)
            self._disk.rename(scratch, os.path.join(self.path, part.path))
            self._disk.sync_folder(self.path)
        return part

    def discard(self, parts: Sequence[Part]) -> None:
        """Remove staged parts, which will not be shown. Raises SinkError: the disk refuses."""
        remove_parts(self.path, [part.path for part in parts], self._disk)

    def commit(
        self,
        parts: Sequence[Part],
        schema: Schema,
        inputs: tuple[Input, ...],
        before: TableState,
        whole: bool,
        removed: Sequence[str] = (),
    ) -> None:
        """Show staged parts, on top of what there is or (`whole`) in its place, and say what was read for them.

        `removed`: parts in whose place they come, of those that stay otherwise. `before` is the state from which the job started. SinkError: the disk refuses, or the table is not as it was then.
        """
        log = CommitLog(self.path, self._disk)
        now = utc(time.time())
        if log.refresh().version < 0:
            log.append(Entry("create", now, schema=schema))
        known = before.inputs

        def unchanged(state: TableState) -> None:
            if state.inputs != known:
                raise Conflict(f"table {self.path} was made by another process meanwhile; analyze again")

        old = [part.path for part in log.files()] if whole else list(removed)
        for path in old:
            # vacuum goes by the age of a file: that of its removal counts, for the sake of those who still read it
            with explained("touching", path), contextlib.suppress(FileNotFoundError):
                self._disk.touch(os.path.join(self.path, path))
        if whole:
            entry = Entry("replace", now, add=tuple(parts), schema=schema, inputs=inputs)
        else:
            there = before.schema if before.version >= 0 else schema
            merged = merge(there, schema)
            changed = merged if merged != there else None
            gone = tuple(removed)
            entry = Entry("rows", now, add=tuple(parts), remove=gone, schema=changed, inputs=inputs, distinct=True)
        log.append(entry, unchanged)
        with contextlib.suppress(SinkError):  # what stays is removed the next time
            vacuum(self.path, max(self._retention, _UNSHOWN), disk=self._disk)
