"""A Delta Lake table as a sink.

`prepare` stages Parquet parts of one sub-unit, durable and named by no version. `commit_all`, in the driver's process,
hands the parts of all sub-units to the process that commits: one version for each checkpoint.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from esault.errors import SinkError
from esault.sinks.delta.committer import Committer
from esault.sinks.delta.fit import Declared, new_columns, parse_partitions
from esault.sinks.delta.part import StagedPart, stage, staging
from esault.sinks.landing.arrow import load
from esault.sinks.landing.buffer import Buffer
from esault.sinks.landing.changelog import Changelog
from esault.sinks.landing.disk import Disk, LocalDisk, explained
from esault.sinks.landing.log import LOG_FOLDER
from esault.sinks.landing.schema import UPSERT_ADDED, parse_columns, parse_primary_key
from esault.sinks.landing.staging import Staging
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo, Sink

__all__ = ["DeltaSink"]

_MODES = ("error", "append", "replace")


class DeltaSink(Sink):
    """Writes a Delta Lake table in a local folder, a version for each checkpoint: `DeltaSink("out/t", {"word": str, "total": int})`.

    `columns`, `key` and the types of values as for `SparkTable`; nothing is added to them. `mode` is for a table that has
    rows: "error" refuses it, "append" adds to it, "replace" begins it anew; older versions stay readable. `partition_by`
    names columns of str, int, bool or date whose values divide the table. `schema_mode="merge"`: columns that the table does not have
    are added to it, and those that are not declared here are null; without it both are refused.

    With `primary_key` the table has one row for each key, the newest: rows are merged into it (MERGE), and `deleted`
    and None as a value delete, as for `SparkTable`. Each checkpoint then rewrites the files that hold its keys.

    Needs `esault[delta]` and a run with checkpoints. Raises SinkError for a wrong argument; nothing is opened.
    """

    takes_arrays: ClassVar[bool] = True
    extra: ClassVar[str] = "delta"
    delivery_guarantee: ClassVar[str] = (
        "exactly once: one version of the table for each checkpoint; refused without them"
    )

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Mapping[str, Any] | type[Any],
        mode: str = "error",
        *,
        key: str | Mapping[str, Any] | None = None,
        partition_by: str | Sequence[str] = (),
        schema_mode: str | None = None,
        primary_key: str | Sequence[str] | None = None,
        deleted: str | None = None,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or not os.fspath(path):
            raise SinkError(f"DeltaSink: path must be the name of a folder, got {path!r}")
        self.path = os.path.expanduser(os.fspath(path))
        if "://" in self.path:
            raise SinkError(
                f"DeltaSink: {self.path} is no local folder. Parts are renamed when they are committed, which object stores "
                "cannot; write the table on a disk that all hosts share"
            )
        if "%" in os.path.abspath(self.path):
            raise SinkError(
                f"DeltaSink: {self.path}: deltalake takes a % in a path for an escape; name the folder without"
            )
        if mode not in _MODES:
            raise SinkError(f'DeltaSink: mode must be "error", "append" or "replace", got {mode!r}')
        if schema_mode not in (None, "merge"):
            raise SinkError(
                f'DeltaSink: schema_mode must be "merge" or None, got {schema_mode!r}; mode="replace" takes new columns as they are'
            )
        self.mode, self.schema_mode, self.deleted = mode, schema_mode, deleted
        added = UPSERT_ADDED if primary_key is not None else ()
        self.columns = parse_columns("DeltaSink", columns, [column.name for column in added], key)
        self.primary_key = parse_primary_key("DeltaSink", self.columns, primary_key, deleted)
        self.partition_by = parse_partitions(self.columns, partition_by)
        self._disk: Disk = LocalDisk()
        self._rows: Staging[StagedPart] | None = None
        # of the driver's object
        self._committer: Committer | None = None
        self._lineage = ""

    def __repr__(self) -> str:
        return f"DeltaSink({self.path!r})"

    # in the driver

    def check(self) -> None:
        """SinkError when a library is missing, the path cannot be written, or the table has other columns. A run that did
        not end well may be resumed: then `begin`, which is told, says whether rows are in the way."""
        # Only looked for: what has used delta-rs must not be forked, and the process that checks is.
        for library in ("pyarrow", "deltalake"):
            if importlib.util.find_spec(library) is None:
                raise SinkError(f"{self!r} needs {library}: pip install 'esault[delta]'")
        self._check_folder()
        if self.mode == "append" and os.path.isdir(os.path.join(self.path, "_delta_log")):
            committer = Committer(self.path)
            try:
                there = committer.ask("look")
                if there is not None:
                    new_columns(self._declared(), there)
            finally:
                committer.close()

    def begin(self, run: RunInfo) -> None:
        """Make, take or replace the table. SinkError as for `check`, and where it has rows and `mode` is "error"."""
        self._check_folder()
        self._lineage = run.lineage
        with explained("making", self.path):
            self._disk.make_folder(os.path.abspath(self.path))
        self._committer = committer = Committer(self.path)
        try:
            there = committer.ask("look")
            # all may be null: then a column can come later that rows do not have
            columns = [(column.name, column.type, True) for column in self.columns]
            if there is None or (self.mode == "replace" and not run.resumed):
                if there is not None and there["append_only"] and there["rows"]:
                    raise SinkError(f"{self._named()} takes no deletions (delta.appendOnly); choose another path")
                committer.ask("create", columns=columns, partition_by=self.partition_by, replace=there is not None)
            elif self.mode == "error" and not run.resumed and there["rows"]:
                raise SinkError(
                    f"{self._named()} exists and has rows. Write to another path, or say what to do with them: "
                    'mode="append" keeps them, mode="replace" removes them'
                )
            elif new := new_columns(self._declared(), there):
                committer.ask("add_columns", columns=[column for column in columns if column[0] in new])
        except BaseException:
            self.end(False)
            raise

    def commit_all(self, epoch: int, handles: Sequence[Any]) -> None:
        """All that these handles name is one version of the table, unless it is there already."""
        named = [handle for handle in handles if handle]
        if not named:
            return
        if self._committer is None:
            self._committer = Committer(self.path)
        self._committer.ask(
            "commit",
            epoch=epoch,
            handles=named,
            columns=[(column.name, column.type) for column in self.columns],
            partition_by=self.partition_by,
            primary_key=self.primary_key,
        )

    def forget_staged(self, kept: Sequence[Any] = ()) -> None:
        """Remove parts that will never be committed; those that are kept are in the table by now."""
        if self._committer is not None and os.path.isdir(staging(self.path, self._lineage)):
            self._committer.ask("forget", lineage=self._lineage)

    def end(self, ok: bool) -> None:
        """The run is over: end the process that commits, and remove what is empty."""
        committer, self._committer = self._committer, None
        if committer is not None:
            committer.close()
            folder = staging(self.path, self._lineage)
            for empty in (folder, os.path.dirname(folder)):
                with contextlib.suppress(OSError):  # it is gone, or others have staged there
                    os.rmdir(empty)

    # in the process that writes

    def open(self, context: Context) -> None:
        """Make ready to write as this sub-unit; forgets what an earlier `open` left uncommitted."""
        self.context = context
        load()
        owner = f"{self!r} of {context.unit}"
        changelog, schema = None, self.columns
        if self.primary_key:
            changelog = Changelog(owner, self.columns, self.primary_key, self.deleted, context.now)
            schema = self.columns + UPSERT_ADDED
        buffer = Buffer(owner, schema, context.run, changelog)
        self._rows = Staging(buffer, self._stage, self._sync, context.in_thread)

    def write(self, rows: Sequence[Row]) -> None:
        """Take rows. SinkError when a value does not fit its column: named with key, type and column."""
        staging = self._opened()
        staging.buffer.add_rows(rows)
        staging.spill()

    def write_columns(self, keys: Any, values: Any, time: float, ids: Sequence[str] | None) -> None:
        """Take rows as columns; see `write`."""
        staging = self._opened()
        staging.buffer.add(keys, values, time, ids)
        staging.spill()

    def prepare(self, epoch: int) -> Any:
        """Stage what came since the last one; the handle names the parts. May be tried again after a SinkError."""
        return self._opened().prepare(self._handle)

    def _handle(self, parts: list[StagedPart]) -> dict[str, Any] | None:
        if not parts:
            return None
        where = self.context
        # Epochs are those of a run: with --restart they begin anew.
        app = f"esault/{where.lineage}/{where.unit}/{where.run}"
        return {"app": app, "lineage": where.lineage, "parts": [part.to_json() for part in parts]}

    def close(self) -> None:
        """Rows that were not prepared are dropped; what was prepared can still be committed."""
        self._rows = None

    # the rest

    def _opened(self) -> Staging[StagedPart]:
        if self._rows is None:
            raise SinkError(f"{self!r} is not open: the engine calls open(context) before it writes")
        return self._rows

    def _staging(self) -> str:
        return staging(self.path, self.context.lineage)

    def _stage(self, rows: Buffer) -> list[StagedPart]:
        """Write all rows of a buffer, which stay there, as parts."""
        # rows that are merged into the table are not parts of it
        by = () if self.primary_key else self.partition_by
        return stage(self._staging(), rows.table(), self.columns, by, self._disk)

    def _sync(self) -> None:
        with explained("writing", self.path):
            self._disk.sync_folder(self._staging())

    def _declared(self) -> Declared:
        return Declared(self.path, self.columns, self.partition_by, self.primary_key, self.schema_mode == "merge")

    def _named(self) -> str:
        return f"Delta table {self.path}"

    def _check_folder(self) -> None:
        """SinkError when the path cannot become, or is not, a Delta table that this user may write."""
        path = os.path.abspath(self.path)
        above = path
        while not os.path.lexists(above):
            above = os.path.dirname(above)
        if not os.path.isdir(above):
            raise SinkError(f"{self.path}: {above} is a file, not a folder. Choose another path, or move the file away")
        if not os.access(above, os.W_OK | os.X_OK):
            raise SinkError(
                f"{self.path}: this user may not write in {above}. Change its rights, or choose another path"
            )
        names = set(os.listdir(path)) if above == path else set()
        if LOG_FOLDER in names:
            raise SinkError(
                f"{self.path} is a table of eSault (SparkTable, Parquet), and no Delta table. Choose another folder"
            )
        if names and not names & {"_delta_log", "_esault_staged"}:
            raise SinkError(
                f"{self.path} holds other files ({min(names)}, ...), and no Delta table. Choose a folder of its own"
            )
