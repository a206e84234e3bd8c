"""One run writes a table at a time: the lock that says so.

It is a `flock` on a file, held by the driver's process from `begin` to `end`: the kernel lets go of it when the last
process that inherited it is gone, so no crash leaves it locked, and what a crashed run's processes still write is over
when the next run gets it. Compaction and vacuum need no lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket

from esault.errors import SinkError
from esault.sinks.landing.disk import refusal
from esault.sinks.landing.log import LOG_FOLDER

__all__ = ["HeldError", "RunLock"]


class HeldError(SinkError):
    """Another process holds the lock; `holder` is who."""

    def __init__(self, holder: str, text: str) -> None:
        super().__init__(text)
        self.holder = holder


class RunLock:
    """The lock of the table in folder `table`, whose log folder exists; or of a folder of tables, which is `within` it."""

    def __init__(self, table: str, within: str = LOG_FOLDER) -> None:
        self._table = table
        self._path = os.path.join(table, within, "lock")
        self._descriptor: int | None = None

    def acquire(self, run: str) -> None:
        """Hold it until `release`; SinkError, which names the holder, when another run does."""
        descriptor = self._open()
        try:
            self._flock(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        holder = json.dumps({"run": run, "host": socket.gethostname(), "pid": os.getpid()}).encode()
        # who holds it is said for the next one's error message only: a full disk must not matter here
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, holder, 0)

    def check(self) -> None:
        """Take the lock. Raises SinkError when another process holds it."""
        if not os.path.exists(self._path):
            return
        descriptor = self._open()
        try:
            self._flock(descriptor)
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Let go of it, also for the processes that inherited it."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise refusal("opening", self._path, error) from error

    def _flock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._holder(descriptor)
            raise HeldError(
                holder,
                f"table {self._table} is being written by {holder}. Wait for it, stop it, "
                "or write to another path; two sinks of one run need a path each",
            ) from None
        except OSError as error:
            raise SinkError(
                f"{self._path}: the file system has no locks ({error.strerror}), so two runs could write "
                "the table at once. Land it on a local disk or NFS 4"
            ) from error

    @staticmethod
    def _holder(descriptor: int) -> str:
        try:
            holder = json.loads(os.pread(descriptor, 4096, 0))
            return f"run {holder['run']} (process {holder['pid']} on {holder['host']})"
        except (OSError, ValueError, KeyError, TypeError):
            return "another run"
