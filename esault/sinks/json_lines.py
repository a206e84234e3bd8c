"""A JSON lines file as a sink."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from esault.errors import SinkError, TopologyError
from esault.sinks.committed_file import CommittedFile
from esault.sinks.durable import unwritable
from esault.sinks.json_row import encode_row, with_objects
from esault.sinks.row_log import RowLog
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo, Sink

__all__ = ["JsonLines"]

#: bytes after which a log that has been copied whole gives way to a new one, so that a long run does not fill the disk
_LOG_SIZE = 64 * 1024 * 1024


class JsonLines(Sink):
    """One JSON object per row, `{"key": ..., "value": ...}`, in one file that any number of sub-units write.

    `mode` is for a file that is there already: "error" refuses it, "append" adds to it, "replace" empties it when
    the run begins. `with_time=True` adds "time", when the tuple was due at its spout, in seconds since the epoch.
    How values are written that JSON has no word for is said in `esault.sinks.json_row`: dataclasses, NamedTuples and models
    as objects with their fields, datetimes in ISO 8601, tuples as lists, Decimals and bytes (base64) as text, sets as
    sorted lists.

    A row appears in the file when it is committed, whole, and once per commit however often the commit comes. After
    a crash a half line may stand at the end until the next commit or run, which removes it. One run at a time writes
    to a file; that is what the hidden folder beside it is for (`esault.sinks.committed_file`). On several hosts
    each writes the file of this name on its own disk, unless the folder is one that they share.
    """

    owns_path: ClassVar[bool] = True

    def __init__(self, path: str | os.PathLike[str], mode: str = "error", *, with_time: bool = False) -> None:
        if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or not os.fspath(path):
            raise TopologyError(f'JsonLines: path={path!r}: write the name of a file, such as "out/rows.jsonl"')
        if mode not in ("error", "append", "replace"):
            raise TopologyError(f'JsonLines: mode={mode!r}: write "error", "append" or "replace"')
        self.path = os.path.expanduser(os.fspath(path))
        self.mode = mode
        self.with_time = with_time
        self._file = CommittedFile(self.path)
        self._log: RowLog | None = None
        self._copied = 0
        #: logs that nothing is added to any more, and their length, until they have been copied
        self._full: dict[str, int] = {}

    def check(self) -> None:
        """Raises SinkError where the file may not be written, and where it exists and `mode` is "error"."""
        self._file.check(self.mode)

    def begin(self, run: RunInfo) -> None:
        """Take the file for this run; SinkError where another run has it, or it exists and `mode` is "error"."""
        self._file.begin(run.run, self.mode, run.resumed)

    def end(self, ok: bool) -> None:
        """Give the file back, with whole rows only."""
        self._file.end(ok, remove_if_empty=self.mode == "error")

    def open(self, context: Context) -> None:
        """Make ready to write as this sub-unit; forgets what an earlier `open` left uncommitted."""
        self.context = context
        self._full = {}
        if self._log is not None:
            # its file stays: what was prepared can still be committed by its handle
            self._log.close()
            self._log = None

    def write(self, rows: Sequence[Row]) -> None:
        """Into this sub-unit's log."""
        values = with_objects([row.value for row in rows])
        if self.with_time:
            self._write([{"key": row.key, "value": value, "time": row.time} for row, value in zip(rows, values)])
        else:
            self._write([{"key": row.key, "value": value} for row, value in zip(rows, values)])

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time: float, ids: Sequence[str] | None) -> None:
        """Into this sub-unit's log."""
        values = with_objects(values)
        if self.with_time:
            self._write([{"key": key, "value": value, "time": time} for key, value in zip(keys, values)])
        else:
            self._write([{"key": key, "value": value} for key, value in zip(keys, values)])

    def prepare(self, epoch: int) -> Any:
        """The log is durable; the handle names each log that is not yet shown whole, and how much of it is to be.

        It covers what was prepared before and never committed, too: an epoch may be given up.
        """
        log = self._log
        if log is not None and log.size != self._copied:
            end = log.sync()
            if end < _LOG_SIZE:
                return (*self._full.items(), (log.name, end))
            # Rows may come between this and the commit, so that it would never be copied whole: the next ones go to another.
            log.close()
            self._full[log.name] = end
            self._log = None
        return tuple(self._full.items()) or None

    def commit(self, epoch: int, handle: Any) -> None:
        """Copy the logs to the file as far as the handle says, unless that has been done."""
        for name, end in handle or ():
            self._file.commit(name, end)
            if self._log is not None and self._log.name == name:
                self._copied = max(self._copied, end)
            elif self._full.get(name, end + 1) <= end:
                del self._full[name]
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self._file.folder, name))

    def forget_staged(self, kept: Sequence[Any] = ()) -> None:
        """Remove the logs of processes that are gone; all that was to be copied from them has been."""
        self._file.forget_logs()

    def close(self) -> None:
        """Close the log; it is removed unless there are rows in it that were not committed."""
        if self._log is not None:
            self._drop_log(self._log)

    def _write(self, rows: list[dict[str, Any]]) -> None:
        try:
            data = b"".join(map(encode_row, rows))
        except SinkError as error:
            raise SinkError(f"{self.path}: {error}") from None
        log = self._log
        if log is None:
            log = self._log = self._new_log()
        log.write(data)

    def _new_log(self) -> RowLog:
        # never used twice, whatever the engine numbers twice
        name = f"{quote(self.context.run, safe='')}-{self.context.sub_unit}-{secrets.token_hex(8)}.log"
        try:
            os.makedirs(self._file.folder, exist_ok=True)
        except OSError as error:
            raise unwritable(self.path, error) from error
        self._copied = 0
        return RowLog(os.path.join(self._file.folder, name))

    def _drop_log(self, log: RowLog) -> None:
        log.close()
        if self._copied == log.size:
            with contextlib.suppress(FileNotFoundError):  # the run may have ended, and tidied up, before us
                os.unlink(log.path)
        self._log = None
