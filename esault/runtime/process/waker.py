"""A pipe that wakes a thread which waits for descriptors: what others call the self-pipe trick."""

from __future__ import annotations

import contextlib
import os

__all__ = ["Waker"]

_MOST = 4096


class Waker:
    """Is readable from a call of `wake` until `clear`. Any thread may call `wake`."""

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._read_fd

    def wake(self) -> None:
        """Make it readable, if it is not."""
        with contextlib.suppress(BlockingIOError):  # full: the other is awake, or about to be
            os.write(self._write_fd, b"w")

    def clear(self) -> None:
        """Forget all calls of `wake` so far."""
        with contextlib.suppress(BlockingIOError):
            while len(os.read(self._read_fd, _MOST)) == _MOST:
                pass

    def close(self) -> None:
        """Close both ends. No thread may call `wake` after it."""
        os.close(self._read_fd)
        os.close(self._write_fd)
