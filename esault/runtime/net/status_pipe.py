"""A pipe for the status reports of a host's sub-units: all of them write to it, the actor that they report to reads.

A sub-unit reports four times a second. As messages between actors, reports were most of what an idle sub-unit cost, and what kept the
driver busy (docs/explanation/runtime.md has the figures).

Bytes of one write never stand among those of another, up to PIPE_BUF (pipe(7)). What is longer, or finds the pipe full or
gone, goes as a message.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

__all__ = ["Report", "ReportOrder", "StatusReader", "StatusWriter"]

#: the pipe's name in the run's folder
_NAME: Final = "status"
#: bytes that wait in the pipe at most, where the system allows: four reports a second of a thousand sub-units for 0.1 s
_SIZE: Final = 1 << 20
_HEADER: Final = struct.Struct("<I")


class Report(NamedTuple):
    """A status, and its place among the control messages of its process."""

    process: int
    #: control messages that the process had for the same actor by then
    behind: int
    status: Any


class StatusReader:
    """The end that reads; `loads` raises PermissionError for bytes that no process of this run has written."""

    def __init__(self, folder: str, loads: Callable[[bytes], object]) -> None:
        """Make the pipe. Raises OSError."""
        self._path = os.path.join(folder, _NAME)
        self._loads = loads
        #: the last one is in the folder; those before it have lost their files, and keep the writers that they had
        self._pipes = [_Pipe(self._path, loads)]

    def read(self) -> list[Report]:
        """Return all that was written since."""
        return [report for pipe in self._pipes for report in pipe.read()]

    def mend(self) -> None:
        """Make the file again if another program has removed it: newcomers look for it. Where that cannot be, they send messages."""
        if not os.path.exists(self._path):
            with contextlib.suppress(OSError):
                self._pipes.append(_Pipe(self._path, self._loads))

    def close(self) -> None:
        """Close all that is open here."""
        for pipe in self._pipes:
            pipe.close()


class _Pipe:
    """A pipe, and what was read of a report that is not whole."""

    def __init__(self, path: str, loads: Callable[[bytes], object]) -> None:
        os.mkfifo(path, 0o600)
        self._loads = loads
        self._read_fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        # without a writer it would be at its end
        self._write_fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        with contextlib.suppress(OSError, AttributeError):  # not on this system, or not for this user
            fcntl.fcntl(self._write_fd, fcntl.F_SETPIPE_SZ, _SIZE)
        self._rest = b""

    def read(self) -> list[Report]:
        found: list[Report] = []
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._read_fd, _SIZE):
                self._rest += data
                self._cut(found)
                if len(data) < select.PIPE_BUF:
                    break
        return found

    def _cut(self, found: list[Report]) -> None:
        data, at = self._rest, 0
        while len(data) - at >= _HEADER.size:
            end = at + _HEADER.size + _HEADER.unpack_from(data, at)[0]
            if end - at > select.PIPE_BUF:
                at = len(data)  # a stranger's: where the next report begins is not known
                break
            if end > len(data):
                break
            try:
                found.append(Report(*self._loads(data[at + _HEADER.size : end])))  # type: ignore[misc]
            except (PermissionError, TypeError):
                at = len(data)
                break
            at = end
        self._rest = data[at:]

    def close(self) -> None:
        os.close(self._read_fd)
        os.close(self._write_fd)


class StatusWriter:
    """The end of one sub-unit."""

    def __init__(self, folder: str, dumps: Callable[[object], bytes]) -> None:
        self._dumps = dumps
        self._fd: int | None = None
        with contextlib.suppress(OSError):  # not there, or no descriptor is left: reports go as messages
            self._fd = os.open(os.path.join(folder, _NAME), os.O_WRONLY | os.O_NONBLOCK)

    def send(self, report: Report) -> bool:
        """Return whether it was written."""
        if self._fd is None:
            return False
        body = self._dumps(tuple(report))
        if _HEADER.size + len(body) > select.PIPE_BUF:
            return False
        try:
            os.write(self._fd, _HEADER.pack(len(body)) + body)
        except BlockingIOError:
            return False
        except OSError:
            self.close()
            return False
        return True

    def close(self) -> None:
        """Write no more."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


class ReportOrder:
    """Brings reports to their places among the messages of their processes, which come another way.

    A report that comes behind a message that it was written before is left out: the next one says the same and more.
    """

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._early: dict[int, list[Report]] = {}

    def due(self, reports: Iterable[Report]) -> list[Any]:
        """Return the statuses of those that stand behind the messages that have come; those further on are kept for `counted`."""
        found = []
        for report in reports:
            count = self._counts.get(report.process, 0)
            if report.behind == count:
                found.append(report.status)
            elif report.behind > count:
                self._early.setdefault(report.process, []).append(report)
        return found

    def counted(self, process: int, count: int) -> list[Any]:
        """Note that so many messages of a process have come by now; return the statuses that stand behind the last of them."""
        self._counts[process] = count
        early = self._early.pop(process, None)
        if early is None:
            return []
        later = [report for report in early if report.behind > count]
        if later:
            self._early[process] = later
        return [report.status for report in early if report.behind == count]

    def forget(self, process: int) -> None:
        """A process is gone."""
        self._counts.pop(process, None)
        self._early.pop(process, None)
