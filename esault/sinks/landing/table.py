"""A sink that lands rows as Parquet parts under a commit log. `SparkTable` and `Parquet` are thin over it.

What waits for the disk is done by `Context.in_thread`, beside the data loop; rows may come meanwhile.

One epoch of one sub-unit: `prepare` writes a part (temporary name, fsync, rename, fsync of the folder), which
is not visible yet; `commit` adds the log entry that makes it visible. A crash between the two leaves a part that no
reader sees and `vacuum` removes. What is prepared and never committed because a checkpoint was given up stays with
the next handle, each epoch under its own `txn`, so nothing is lost and nothing comes twice.

It is one module of over 300 lines: a part lives here from its first row to the commit that shows it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import time as clock
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from esault.errors import SinkError
from esault.object_store.stored_object import is_url, local_path
from esault.sinks.landing.arrow import load
from esault.sinks.landing.buffer import Buffer
from esault.sinks.landing.changelog import Changelog
from esault.sinks.landing.compaction import Compactor, compact_all
from esault.sinks.landing.disk import Disk, LocalDisk, explained
from esault.sinks.landing.entry import Entry, Part, Txn
from esault.sinks.landing.evolve import Unfit, merge
from esault.sinks.landing.lock import RunLock
from esault.sinks.landing.log import LOG_FOLDER, CommitLog, Conflict, probe, utc
from esault.sinks.landing.object_disk import ObjectDisk
from esault.sinks.landing.schema import UPSERT_ADDED, Schema, parse_columns, parse_primary_key
from esault.sinks.landing.staging import Staging
from esault.sinks.landing.state import TableState
from esault.sinks.landing.vacuum import prune, remove_parts, vacuum
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo, Sink

__all__ = ["LandedTable"]

_MODES = ("error", "append", "replace")
#: seconds between two times that a run which goes on and on removes what is old in the log
_PRUNE_EVERY = 3600.0
#: rows of a table with a primary key that the end of a run merges: about a second; more are left to the rules
_COMPACTED_AT_END = 2_000_000

_logger = logging.getLogger(__name__)


class LandedTable(Sink):
    """See the module. Subclasses say which columns are added."""

    takes_arrays: ClassVar[bool] = True
    #: columns that are added to the user's
    added: ClassVar[Schema] = ()

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Mapping[str, Any] | type[Any],
        mode: str = "error",
        *,
        key: str | Mapping[str, Any] | None = None,
        primary_key: str | Sequence[str] | None = None,
        deleted: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """`columns` and `key` as `schema.parse_columns` says, `primary_key` and `deleted` as `schema.parse_primary_key`.
        `mode` says what to do with a table that has rows: refuse ("error"),
        go on with it ("append"), or let its rows go ("replace"). SinkError for a wrong argument; nothing is opened."""
        name = type(self).__name__
        if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or not os.fspath(path):
            raise SinkError(f"{name}: path must be the name of a folder, got {path!r}")
        self.path = os.path.expanduser(local_path(os.fspath(path)))
        #: in an object store
        self._far = is_url(self.path)
        if self._far:
            self.path = self.path.rstrip("/")
            if primary_key is not None:
                raise SinkError(
                    f"{name}: {self.path}: a table with primary_key rewrites its files, which it does in a folder alone; land it on a disk, "
                    "or take DeltaSink"
                )
        if mode not in _MODES:
            raise SinkError(f'{name}: mode must be "error", "append" or "replace", got {mode!r}')
        self.mode = mode
        added = self.added if primary_key is None else UPSERT_ADDED
        declared = parse_columns(name, columns, [column.name for column in added], key)
        self.schema = declared + added
        self.primary_key = parse_primary_key(name, declared, primary_key, deleted)
        if self.primary_key:
            # the newest row is told by when it was written: ids would cost the units before for nothing
            self.wants_id = False  # type: ignore[misc]
        self.deleted = deleted
        self._changelog: Changelog | None = None
        self._compactor: Compactor | None = None
        self._disk: Disk = ObjectDisk(self.path, storage_options) if self._far else LocalDisk()
        self._log: CommitLog | None = None
        self._staging: Staging[Part] | None = None
        self._prune_at = 0.0
        #: handles of epochs that were not committed, and those that were prepared since
        self._open_epochs: list[dict[str, Any]] = []
        self._prepared: deque[dict[str, Any]] = deque()
        self._app = ""
        self._fence: tuple[str | None, ...] | None = None
        # of the driver's object
        self._lock: RunLock | None = None
        self._run: RunInfo | None = None
        self._replaced: list[str] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    def written_paths(self) -> Sequence[str]:
        """Return the table's folder; none where all hosts reach an object store."""
        return () if self._far else (self.path,)

    # in the driver

    def check(self) -> None:
        """SinkError when pyarrow is missing, the path is something else or cannot be written, another run writes the
        table, or it has rows and `mode` forbids that or other columns. A run that did not end well may be resumed:
        then `begin`, which is told, says whether the rows are in the way."""
        if importlib.util.find_spec("pyarrow") is None:
            raise SinkError(f"{self!r} needs pyarrow: pip install 'esault[parquet]'")
        self._check_folder()
        if not self._far:
            RunLock(self.path).check()
        state = self._read()
        if state is not None and state.written:
            if self.mode == "error" and state.ended:
                raise self._exists()
            if self.mode == "append":
                self._check_columns(state)

    def begin(self, run: RunInfo) -> None:
        """Take the table for this run: lock it, make or replace it. SinkError as for `check`."""
        self._check_folder()
        folder = os.path.join(self.path, LOG_FOLDER)
        with explained("making", folder):
            self._disk.make_folder(folder)
        # In a store another run may begin: it has the commits of this one refused.
        lock = None if self._far else RunLock(self.path)
        if lock is not None:
            lock.acquire(run.run)
        try:
            probe(folder, self._disk)
            self._begin(run)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        self._lock, self._run = lock, run

    def _begin(self, run: RunInfo) -> None:
        log = CommitLog(self.path, self._disk)
        state = log.refresh()
        now = utc(clock.time())
        if state.version < 0:
            try:
                log.append(Entry("create", now, run.run, schema=self.schema, primary_key=self.primary_key))
                return
            except Conflict:  # a sub-unit was faster
                state = log.refresh()
        if not run.resumed and any(app.startswith(f"{run.run}/") for app in state.txns) and self.mode != "replace":
            # its epochs would be taken for repetitions, and be dropped
            raise SinkError(
                f"table {self.path}: run {run.run} has written to it before, and is not resumed; "
                "a run needs an identity of its own"
            )
        if run.resumed or (self.mode == "append" and state.written):
            merged = self._check_columns(state)
            changed = self.schema != state.schema
            log.append(Entry("begin", now, run.run, schema=merged if changed else None))
            if changed:
                _logger.info(
                    "%s: its columns are now %s", self.path, ", ".join(f"{c.name}: {c.python}" for c in merged)
                )
        elif self.mode == "error" and state.written:
            raise self._exists()
        else:
            assert state.files is not None
            self._replaced = list(state.files)
            log.append(Entry("replace", now, run.run, schema=self.schema, primary_key=self.primary_key))

    def end(self, ok: bool) -> None:
        """The run is over: say so in the log, remove what a replaced table left and what is not needed, unlock.

        All rows are safe by then: what fails here is logged, and done by the next run or by `vacuum`.
        """
        if self._run is None:
            return
        try:
            log = CommitLog(self.path, self._disk, keep_files=False)
            run = self._run.run
            if log.refresh().run == run:
                log.append(Entry("end", utc(clock.time()), run, ok=ok, distinct=not self.repeated))
            remove_parts(self.path, self._replaced, self._disk)
            if self.primary_key:
                self._compact_at_end()
            vacuum(self.path, disk=self._disk)
        except SinkError as error:
            _logger.warning("after the end of the run: %s", error)
        finally:
            self._run, self._replaced = None, []
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def _compact_at_end(self) -> None:
        """Leave one row of each key, if that is little work; others who compact are at the same."""
        log = CommitLog(self.path, self._disk)
        if sum(part.rows for part in log.files()) > _COMPACTED_AT_END:
            return
        with contextlib.suppress(Conflict):
            compact_all(log, self._disk, clock.time())

    # in the process that writes

    def open(self, context: Context) -> None:
        """Make ready to write as this sub-unit; forgets what an earlier `open` left uncommitted."""
        self.context = context
        load()
        folder = os.path.join(self.path, LOG_FOLDER)
        with explained("making", folder):
            self._disk.make_folder(folder)
        self._app = f"{context.run}/{context.unit}/{context.sub_unit}"
        if self.primary_key:
            self._changelog = Changelog(
                f"{self!r} of {context.unit}",
                self.schema[: -len(UPSERT_ADDED)],
                self.primary_key,
                self.deleted,
                context.now,
            )
        buffer = Buffer(f"{self!r} of {context.unit}", self.schema, context.run, self._changelog)
        self._staging = Staging(buffer, self._write_part, self._sync, context.in_thread)
        self._open_epochs = []
        self._prepared.clear()
        self._log = CommitLog(self.path, self._disk, keep_files=False)
        state = self._log.refresh()
        if state.version < 0:
            try:
                self._log.append(
                    Entry("create", utc(clock.time()), context.run, schema=self.schema, primary_key=self.primary_key)
                )
            except Conflict:
                self._log.refresh()
        self._fence = (self._log.state.run, context.run)
        if self._changelog is not None:
            self._changelog.seen(self._log.state.newest)

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
        """Write what came since the last one; the handle names the parts. May be tried again after a SinkError."""
        staging = self._opened()
        self._take_note()
        earlier = [dict(one) for one in self._open_epochs]
        said: dict[str, Any] = {"app": self._app, "epoch": epoch, "run": self.context.run}
        newest = {} if self._changelog is None else {"newest": self._changelog.newest}

        def prepared(parts: list[Part]) -> dict[str, Any]:
            if not parts:
                return {"epochs": earlier}
            one = {**said, "add": [[part.path, part.rows, part.bytes] for part in parts], **newest}
            self._prepared.append(one)
            return {"epochs": [*earlier, dict(one)]}

        return staging.prepare(prepared)

    def _sync(self) -> None:
        with explained("writing", self.path):
            self._disk.sync_folder(self.path)

    def commit(self, epoch: int, handle: Any) -> Any:
        """Make visible what the handle names, unless it is; also a handle that another object prepared."""
        self._take_note()
        self._open_epochs = [one for one in self._open_epochs if one["epoch"] > epoch]
        epochs = handle["epochs"] if handle else ()
        if self._staging is None or not epochs:
            return self._commit_all(epochs)
        return self.context.in_thread(partial(self._commit_all, epochs))

    def _take_note(self) -> None:
        while self._prepared:
            self._open_epochs.append(self._prepared.popleft())

    def _commit_all(self, epochs: Sequence[Mapping[str, Any]]) -> None:
        if self._log is None:
            self._log = CommitLog(self.path, self._disk, keep_files=False)
        for one in epochs:
            self._commit(self._log, one)

    def _commit(self, log: CommitLog, one: Mapping[str, Any]) -> None:
        parts = tuple(Part(*part) for part in one["add"])
        if log.state.version < 0 or not log.state.has(Txn(one["app"], one["epoch"])):
            for part in parts:
                try:
                    self._disk.modified(os.path.join(self.path, part.path))
                except FileNotFoundError:
                    self._refuse_missing(log, one, part)
                    return
        txn = Txn(one["app"], one["epoch"])
        entry = Entry("rows", utc(clock.time()), one["run"], txn, parts, newest=one.get("newest"))
        version = log.append(entry, self._guard)
        if version is None:
            _logger.info("%s: epoch %d of %s is in the log already", self.path, one["epoch"], one["app"])
        elif version == log.state.snapshot_at and clock.monotonic() >= self._prune_at:
            self._prune_at = clock.monotonic() + _PRUNE_EVERY
            try:
                prune(log, self._disk)
            except SinkError as error:  # the next one will
                _logger.warning("old entries of the log of table %s stay: %s", self.path, error)
        if self._changelog is not None:
            self._changelog.seen(log.state.newest)
            if self._compactor is None:
                self._compactor = Compactor(self.path, self._disk)
            self._compactor.look(log.state.version, log.state.parts)

    def close(self) -> None:
        """Rows that were not prepared are dropped; what was prepared can still be committed."""
        self._staging = None
        if self._compactor is not None:
            self._compactor.stop()

    # the rest

    def _opened(self) -> Staging[Part]:
        if self._staging is None:
            raise SinkError(f"{self!r} is not open: the engine calls open(context) before it writes")
        return self._staging

    def _write_part(self, buffer: Buffer) -> list[Part]:
        """A part of all rows in the buffer, which stay there. Its name is not yet durable."""
        rows, data = buffer.parquet()
        part = Part(f"part-{os.urandom(16).hex()}.parquet", rows, data.size)
        path = os.path.join(self.path, part.path)
        scratch = os.path.join(self.path, f".{os.urandom(8).hex()}.tmp")
        with explained("writing", path):
            self._disk.write_new(scratch, memoryview(data))
            self._disk.rename(scratch, path)
        return [part]

    def _guard(self, state: TableState) -> None:
        """Refuse a commit of rows that the table must not get."""
        if self._fence is not None and state.run is not None and state.run not in self._fence:
            raise SinkError(
                f"table {self.path} is now written by run {state.run}; what is left of run {self.context.run} may not "
                "add to it any more"
            )
        if self._check_columns(state) != state.schema:
            raise SinkError(f"table {self.path} has other columns than when this run began; begin the run anew")

    def _refuse_missing(self, log: CommitLog, one: Mapping[str, Any], part: Part) -> None:
        """A part of a handle is gone. Right if the epoch was committed and compacted since, else a loss."""
        if not log.refresh().has(Txn(one["app"], one["epoch"])):
            raise SinkError(
                f"table {self.path}: {part.path}, {part.rows} rows prepared in epoch {one['epoch']} of {one['app']}, "
                "is gone; vacuum removes what waits for its commit longer than a week. Begin the run anew with --restart"
            )

    def _read(self) -> TableState | None:
        """The table's state, None when there is none yet."""
        state = CommitLog(self.path, self._disk, keep_files=False).refresh()
        return state if state.version >= 0 else None

    def _exists(self) -> SinkError:
        return SinkError(
            f"table {self.path} exists and has rows. Write to another path, or say what to do with them: "
            'mode="append" keeps them, mode="replace" removes them'
        )

    def _check_columns(self, state: TableState) -> Schema:
        """The columns of the table with the rows of this sink; SinkError when it cannot have both."""
        if state.primary_key != self.primary_key:
            there, here = (", ".join(key) or "none" for key in (state.primary_key, self.primary_key))
            raise SinkError(
                f"table {self.path} has another primary key ({there}) than {type(self).__name__} declares ({here}). "
                'Declare the same, write to another path, or use mode="replace"'
            )
        if state.schema == self.schema:
            return self.schema
        try:
            return merge(state.schema, self.schema)
        except Unfit as error:
            raise SinkError(
                f"table {self.path} has other columns than {type(self).__name__} declares: {error}. "
                'Or write to another path, or use mode="replace"'
            ) from None

    def _check_folder(self) -> None:
        """SinkError when the path cannot become, or is not, a table of ours that this user may write."""
        path = self.path if self._far else os.path.abspath(self.path)
        if self._far or os.path.isdir(path):
            names = set(self._disk.names(path))
            if names and LOG_FOLDER not in names:
                kind = "is a Delta Lake table" if "_delta_log" in names else f"holds other files ({min(names)}, ...)"
                raise SinkError(f"{self.path} {kind}, and no table of eSault. Choose a folder of its own for the table")
            if self._far:
                return
            for folder in (path, os.path.join(path, LOG_FOLDER)):
                if os.path.exists(folder) and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
                    raise SinkError(
                        f"{folder}: this user may not write there. Change its rights, or choose another path"
                    )
            return
        above = path
        while not os.path.lexists(above):
            above = os.path.dirname(above)
        if not os.path.isdir(above):
            raise SinkError(
                f"{self.path}: {above} is a file, not a folder. Choose another path for the table, "
                "or move the file away"
            )
        if not os.access(above, os.W_OK | os.X_OK):
            raise SinkError(
                f"{self.path}: this user may not make folders in {above}. Change its rights, or choose another path"
            )
