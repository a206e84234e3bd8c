"""Descriptors that a process holds in reserve, for what it must open when it may open no more files."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import time
from collections.abc import Callable
from typing import Any

__all__ = ["NONE_LEFT", "RESERVE", "ROOM", "Reserve", "make_room", "reserve"]

#: descriptors in reserve of each process: connections that it may open when there are no others
RESERVE = 8
#: seconds between two looks whether the reserve can be filled
_FILL_EVERY = 1.0
#: errors that say that no descriptor is to be had
NONE_LEFT = frozenset((errno.EMFILE, errno.ENFILE))
#: descriptors for which a process has room from its start: connections to some hundred sub-units
ROOM = 1024


def make_room(most: int = ROOM) -> None:
    """Have the kernel make this process's table of descriptors as large as it may become. To be called before it has threads.

    The table begins with 64 places and is enlarged when they are used up. Where threads share it, the thread that needs the next
    place then waits until all processors have passed through the kernel (`synchronize_rcu`): 10 ms, and up to a second on a busy
    machine. The spout waited so when it connected to new sub-units, and with it all that came in meanwhile.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    highest = (most if limit == resource.RLIM_INFINITY else min(most, limit)) - 1
    # Where none is left, later is soon enough.
    with contextlib.suppress(OSError), open(os.devnull, "rb") as any_file:
        os.close(fcntl.fcntl(any_file.fileno(), fcntl.F_DUPFD_CLOEXEC, highest))


class Reserve:
    """Descriptors that are held to be given up."""

    def __init__(self, size: int = RESERVE, clock: Callable[[], float] = time.monotonic) -> None:
        self._size, self._clock = size, clock
        self._held: list[int] = []
        self._filled = float("-inf")

    def fill(self) -> None:
        """Hold as many as can be had, if that was not tried just now."""
        if len(self._held) < self._size and self._clock() - self._filled >= _FILL_EVERY:
            self._filled = self._clock()
            with contextlib.suppress(OSError):
                while len(self._held) < self._size:
                    self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def give_up(self) -> bool:
        """Close one; False: none is left."""
        if not self._held:
            return False
        os.close(self._held.pop())
        self._filled = self._clock()  # not at once again: the place is for another
        return True

    def opened(self, operation: Callable[..., Any], *args: Any) -> Any:
        """The result of an operation that opens a descriptor; one of these makes room for it where there is none.

        Raises the operation's `OSError`.
        """
        self.fill()
        while True:
            try:
                return operation(*args)
            except OSError as error:
                if error.errno not in NONE_LEFT or not self.give_up():
                    raise


#: of this process; a forked one inherits it with its descriptors, which are its own from then on
reserve = Reserve()
