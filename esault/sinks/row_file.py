"""Rows of one sub-unit on their way to a visible file: in logs, which commits copy."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections import deque
from collections.abc import Sequence
from functools import partial
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
    """The file at `path`, and what this sub-unit adds to it. Raises SinkError, naming path and remedy.

    What waits for the disk is done by `Context.in_thread`; rows may be written meanwhile.
    """

    def __init__(self, path: str, header: bytes = b"") -> None:
        self.path = path
        self.file = CommittedFile(path, header)
        self._mode = ""
        self._log: RowLog | None = None
        self._copied = 0
        #: logs that nothing is added to any more, and their length, until they have been copied
        self._full: dict[str, int] = {}
        #: of these, those that may not be durable yet
        self._unsynced: list[RowLog] = []
        #: logs that were copied beside the data loop, and how far
        self._done: deque[tuple[str, int]] = deque()
        self._context: Context | None = None

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
        self._context = context
        self._full = {}
        self._done.clear()
        self._close_logs()  # their files stay: what was prepared can still be committed by its handle

    def write(self, data: bytes) -> None:
        """Append to this sub-unit's log."""
        log = self._log
        if log is None:
            log = self._log = self._new_log()
        log.write(data)

    def prepare(self) -> Any:
        """Return each log that is not yet shown whole, and how much of it is to be; it is durable then."""
        self._take_note()
        log = self._log
        open_end: tuple[tuple[str, int], ...] = ()
        self._unsynced = [each for each in self._unsynced if not each.closed]
        logs = list(self._unsynced)
        if log is not None and log.size != self._copied:
            end = log.flush()
            if end < LOG_SIZE:
                open_end = ((log.name, end),)
            else:  # rows may come between this and the commit, so that it would never be copied whole: the next ones go to another
                self._full[log.name] = end
                self._unsynced.append(log)
                self._log = None
            logs.append(log)
        handle = (*self._full.items(), *open_end)
        return self._in_thread(partial(_make_durable, logs, bool(open_end), handle)) if logs else handle or None

    def commit(self, epoch: int, handle: Any) -> Any:
        """Copy the logs to the file as far as the handle says, unless that has been done."""
        return self._in_thread(partial(self._commit, handle)) if handle else None

    def _commit(self, handle: Sequence[tuple[str, int]]) -> None:
        for name, end in handle:
            self.file.commit(name, end)
            self._done.append((name, end))

    def _in_thread(self, work: Any) -> Any:
        return work() if self._context is None else self._context.in_thread(work)

    def _take_note(self) -> None:
        """Take note of what has been copied."""
        while self._done:
            name, end = self._done.popleft()
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
        self._take_note()
        log = self._log
        self._close_logs()
        if log is not None and self._copied == log.size:
            with contextlib.suppress(FileNotFoundError):  # the run may have ended, and tidied up, before us
                os.unlink(log.path)

    def _close_logs(self) -> None:
        if self._log is not None:
            self._unsynced.append(self._log)
        for log in self._unsynced:
            log.close()
        self._log, self._unsynced = None, []

    def _new_log(self) -> RowLog:
        # never used twice, whatever the engine numbers twice
        name = f"{self._writer}-{secrets.token_hex(8)}.log"
        try:
            os.makedirs(self.file.folder, exist_ok=True)
        except OSError as error:
            raise unwritable(self.path, error) from error
        self._copied = 0
        return RowLog(os.path.join(self.file.folder, name))


def _make_durable(
    logs: Sequence[RowLog], goes_on: bool, handle: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """Return the handle, once all these logs are durable, and closed but the last one if it `goes_on`."""
    for log in logs:
        log.sync()
        if not goes_on or log is not logs[-1]:
            log.close()
    return handle
