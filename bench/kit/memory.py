"""The memory of a process and its descendants while they run."""

from __future__ import annotations

import threading

import psutil

__all__ = ["Memory", "pss"]

#: seconds between two samples; a process stands still for milliseconds while its pages are counted
EVERY = 0.2


def pss(pid: int) -> int:
    """Bytes of a process and all its descendants, what they share counted once; 0 when it is gone."""
    total = 0
    try:
        tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return 0
    for process in tree:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total


class Memory(threading.Thread):
    """Samples until it is stopped; `most` is the largest sample, bytes."""

    def __init__(self, pid: int) -> None:
        """Starts at once."""
        super().__init__(daemon=True)
        self.most = 0
        self._pid = pid
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        """The thread."""
        while not self._over.wait(EVERY):
            self.most = max(self.most, pss(self._pid))

    def stop(self) -> int:
        """The largest sample, bytes."""
        self._over.set()
        self.join()
        return self.most
