"""Rows of one sub-unit on their way to a visible file: in logs, which commits copy."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from esault.sinks.committed_file import CommittedFile
from esault.sinks.durable import unwritable
from esault.sinks.row_log import RowLog
from esault.topology.context import Context
from esault.topology.sink import RunInfo

__all__ = ["RowFile"]

#: bytes after which a log that has been copied whole gives way to a new one, so that a long run does not fill the disk
LOG_SIZE = 64 * 1024 * 1024


class RowFile:
    """The file at `path`, and what this sub-unit adds to it. Raises SinkError, naming path and remedy."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = CommittedFile(path)
        self._mode = ""
        self._log: RowLog | None = None
        self._copied = 0
        #: logs that nothing is added to any more, and their length, until they have been copied
        self._full: dict[str, int] = {}

    def check(self, mode: str) -> None:
        """Check that the file may be written, and is not there where `mode` is "error"."""
        self.file.check(mode)

    def begin(self, run: RunInfo, mode: str) -> None:
        """Take the file for this run."""
        self._mode = mode
        self.file.begin(run.run, mode, run.resumed, run.from_savepoint)

    def end(self, ok: bool) -> None:
        """Give the file back, with whole rows only."""
        self.file.end(ok, remove_if_empty=self._mode == "error")

    def open(self, context: Context) -> None:
        """Make ready to write as this sub-unit; forgets what an earlier `open` left uncommitted."""
        self._writer = f"{quote(context.run, safe='')}-{context.sub_unit}"
        self._full = {}
        if self._log is not None:
            # its file stays: what was prepared can still be committed by its handle
            self._log.close()
            self._log = None

    def write(self, data: bytes) -> None:
        """Append to this sub-unit's log."""
        log = self._log
        if log is None:
            log = self._log = self._new_log()
        log.write(data)

    def prepare(self) -> tuple[tuple[str, int], ...] | None:
        """Return each log that is not yet shown whole, and how much of it is to be; it is durable."""
        log = self._log
        if log is not None and log.size != self._copied:
            end = log.sync()
            if end < LOG_SIZE:
                return (*self._full.items(), (log.name, end))
            # Rows may come between this and the commit, so that it would never be copied whole: the next ones go to another.
            log.close()
            self._full[log.name] = end
            self._log = None
        return tuple(self._full.items()) or None

    def commit(self, epoch: int, handle: Any) -> None:
        """Copy the logs to the file as far as the handle says, unless that has been done."""
        for name, end in handle or ():
            self.file.commit(name, end)
            if self._log is not None and self._log.name == name:
                self._copied = max(self._copied, end)
            elif self._full.get(name, end + 1) <= end:
                del self._full[name]
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.file.folder, name))

    def forget(self, kept: Sequence[Any]) -> None:
        """Remove the logs of processes that are gone; all that was to be copied from them has been."""
        self.file.forget_logs()

    def close(self) -> None:
        """Close the log; it is removed unless there are rows in it that were not committed."""
        log, self._log = self._log, None
        if log is not None:
            log.close()
            if self._copied == log.size:
                with contextlib.suppress(FileNotFoundError):  # the run may have ended, and tidied up, before us
                    os.unlink(log.path)

    def _new_log(self) -> RowLog:
        # never used twice, whatever the engine numbers twice
        name = f"{self._writer}-{secrets.token_hex(8)}.log"
        try:
            os.makedirs(self.file.folder, exist_ok=True)
        except OSError as error:
            raise unwritable(self.path, error) from error
        self._copied = 0
        return RowLog(os.path.join(self.file.folder, name))
