"""Descriptors that a process holds in reserve, for what it must open when it may open no more files."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable
from typing import Any

__all__ = ["NONE_LEFT", "RESERVE", "Reserve", "reserve"]

#: descriptors in reserve of each process: connections that it may open when there are no others
RESERVE = 8
#: seconds between two looks whether the reserve can be filled
_FILL_EVERY = 1.0
#: errors that say that no descriptor is to be had
NONE_LEFT = frozenset((errno.EMFILE, errno.ENFILE))


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
