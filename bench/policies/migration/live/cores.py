"""The cores of a host that is modelled: so many events at a time are worked on there, and no cycle is burnt.

A semaphore whose permits are times. A file of the host holds for each core until when it is taken. Who wants to
work takes the core that is free first, books it from then on for as long as the work lasts, and sleeps until that is over. So
workers on one host wait for each other, first come, first served, as at a host with that many cores. In place of a counter, because
a permit whose holder dies ends by itself, and one whose holder wakes up late is free in time nevertheless: the machine that all hosts share
may be busy.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time

__all__ = ["Cores"]


class Cores:
    """Opened by each process for itself: locks belong to open files."""

    def __init__(self, path: str, cores: int) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._format = struct.Struct(f"{cores}d")

    def book(self, now: float, seconds: float) -> float:
        """Return when work of so many seconds will be over that could begin now; `now` on a clock that all hosts share."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            written = os.pread(self._file, self._format.size, 0)
            taken: list[float] = list(self._format.unpack(written.ljust(self._format.size, b"\0")))
            first = min(range(len(taken)), key=taken.__getitem__)
            taken[first] = max(now, taken[first]) + seconds
            os.pwrite(self._file, self._format.pack(*taken), 0)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        return taken[first]

    def serve(self, seconds: float) -> None:
        """Wait for a core, and have it for so long."""
        end = self.book(time.monotonic(), seconds)
        time.sleep(max(0.0, end - time.monotonic()))

    def close(self) -> None:
        """No more of it in this process."""
        os.close(self._file)
