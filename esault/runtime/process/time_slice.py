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
import time
from collections.abc import Callable

__all__ = ["SLICE", "GiveWay", "short_slice"]

#: seconds
SLICE = 0.0005
#: seconds of work between two rests of a thread that gives way, and seconds of a rest
STRETCH, REST = 0.0003, 0.0001
#: rests in a piece of work at most: on a machine whose cores are all busy, each may take as long as others' slices
MOST_RESTS = 20
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


class GiveWay:
    """Rests in a long piece of work, in which threads that wait for this core get it. Call it between the parts of the piece."""

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._worked_since, self._rests = clock(), 0

    def begin(self) -> None:
        """Begin a piece of work: the thread has just been let in."""
        self._worked_since, self._rests = self._clock(), 0

    def __call__(self) -> None:
        """Rest, if the thread has worked for long enough since its last rest."""
        if self._rests < MOST_RESTS and self._clock() - self._worked_since >= STRETCH:
            self._rests += 1
            self._sleep(REST)
            self._worked_since = self._clock()
