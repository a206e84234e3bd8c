"""Until when the driver is known to live: a file of eight bytes that all processes of a run on one host share.

The host agent writes down when it heard from the driver; a data loop looks before each turn, which costs less than a
microsecond. A process that was cut off or frozen with its whole host sees a lease that has run out before it does anything else,
for the clock counts time in which the machine slept. Only runs on several hosts have one.
"""

from __future__ import annotations

import mmap
import struct
import time
from typing import Final

__all__ = ["LEASE", "Lease", "LeaseHolder"]

#: seconds without a word from the driver after which nothing is processed or committed
LEASE: Final = 2.0

_WORD = struct.Struct("d")
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LeaseHolder:
    """The writing end; makes the file."""

    def __init__(self, path: str) -> None:
        with open(path, "wb") as file:
            file.write(_WORD.pack(0.0))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), _WORD.size)
        self.renew()

    def renew(self) -> None:
        """The driver has just been heard."""
        _WORD.pack_into(self._map, 0, time.clock_gettime(_CLOCK))

    def age(self) -> float:
        """Seconds since then."""
        return float(time.clock_gettime(_CLOCK) - _WORD.unpack_from(self._map, 0)[0])


class Lease:
    """The reading end."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), _WORD.size, access=mmap.ACCESS_READ)

    def holds(self) -> bool:
        """Return whether the driver was heard of late."""
        return bool(time.clock_gettime(_CLOCK) - _WORD.unpack_from(self._map, 0)[0] < LEASE)
