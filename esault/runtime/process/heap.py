"""The heap of a process that takes and frees large blocks all the time: frames, columns, chunks of files.

The C library gives freed memory back to the system at once where it is more than a few hundred kilobytes, and the next block of
that size is then new to the system: it clears each page of 4 KiB, at a fault each. With rows of 10 kB that was a seventh of all
processor time. So a process keeps what it has freed, up to a limit.
"""

from __future__ import annotations

import ctypes
import sys

__all__ = ["give_back", "keep_freed"]

#: freed bytes at the end of a heap that stay with the process
KEPT = 16 << 20
#: blocks from this size on, in bytes, are the system's own all the same: a frame at its longest aim is smaller
OWN_MAP = 4 << 20
# <malloc.h>
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed() -> bool:
    """Keep freed memory in this process from now on; return whether the C library can be told so (glibc can)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform.startswith("linux") else None
    return mallopt is not None and bool(mallopt(_M_TRIM_THRESHOLD, KEPT) and mallopt(_M_MMAP_THRESHOLD, OWN_MAP))


def give_back() -> None:
    """Give freed memory back to the system, all of it: what was kept in memory is on a disk, and others need the room."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if trim is not None:
        trim(0)
