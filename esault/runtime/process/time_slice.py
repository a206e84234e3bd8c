"""Time slices: how long the system lets a thread run at a stretch, and so how soon it lets one run that something has come for.

Linux gives a core to the thread whose slice ends first. A thread with the usual slice, some milliseconds, waits that long for a busy
core when a frame comes in. A data loop works for a few tenths of a millisecond and then waits for the next frame: with a slice of
that length it is let in sooner, and gets no more of the core than before.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

__all__ = ["SLICE", "short_slice"]

#: seconds
SLICE = 0.0005
#: number of the system call sched_setattr, by machine: the C library has no name for it
_CALLS = {"x86_64": 314, "aarch64": 274}
# struct sched_attr of <linux/sched/types.h>: size, policy, flags, nice, priority, runtime, deadline, period, and two of utilisation
_ATTRIBUTES = struct.Struct("=IIQiIQQQII")


def short_slice() -> bool:
    """Ask for a short slice for this thread; return whether it was given. Linux 6.12 knows them, earlier ones pass over it.

    A thread with a policy or a niceness that was chosen for it keeps that as it is.
    """
    call = _CALLS.get(platform.machine()) if sys.platform.startswith("linux") else None
    if call is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    asked = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, niceness, 0, int(SLICE * 1e9), 0, 0, 0, 0)
    syscall = ctypes.CDLL(None).syscall
    return bool(syscall(call, 0, asked, 0) == 0)
