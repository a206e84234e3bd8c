"""The owner of a run: a process, known by its id *and* the time at which it started.

Ids are used again, the pair is not. Each process of a run asks once a second whether the owner is still there, and
ends when it is not (see `processes`), so a command that was killed leaves nothing behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from esault.runtime.process.descriptors import NONE_LEFT, reserve
from esault.value_class import value_class

__all__ = ["Owner", "end_with"]

_PR_SET_PDEATHSIG = 1

_PROC = sys.platform.startswith("linux")


@value_class(frozen=True)
class Owner:
    """A process of this machine. `start_time` is only good for comparing: ticks since boot on Linux, else seconds."""

    pid: int
    start_time: float

    @classmethod
    def current(cls) -> Owner:
        """This process."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Owner:
        """The process with this id. Raises `ProcessLookupError` when there is none, or it has ended unreaped."""
        started = _start_time(pid)
        if started is None:
            raise ProcessLookupError(f"no process {pid}")
        return cls(pid, started)

    def alive(self) -> bool:
        """Return whether this very process still runs (a zombie does not); 12 us on Linux. True where no file can be opened."""
        try:
            return _start_time(self.pid) == self.start_time
        except OSError as error:
            if error.errno not in NONE_LEFT:
                raise
            return True


def end_with(parent: int) -> None:
    """Have the kernel end this process when its parent, which started it by exec from a single thread, ends (Linux)."""
    if _PROC:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel knew
        os._exit(1)


def _start_time(pid: int) -> float | None:
    """Return the time at which the process with this id started; None when there is none that runs."""
    if not _PROC:
        return _start_time_by_psutil(pid)
    try:
        with reserve.opened(open, f"/proc/{pid}/stat", "rb", 0) as file:
            stat = file.read(1024)
    except (FileNotFoundError, ProcessLookupError):
        return None
    # proc(5): "pid (name) state ppid ... starttime ..."; the name may hold blanks and brackets, so count from its end
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else float(fields[19])


def _start_time_by_psutil(pid: int) -> float | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.NoSuchProcess:
        return None
