"""Resources that processes and the host take: processor, memory, disk."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from typing import TypeVar

import psutil

from esault.messages.probe import HostUsage, Usage
from esault.runtime.process.descriptors import NONE_LEFT
from esault.runtime.process.memory_limit import MemoryLimit

__all__ = ["host_usage", "process_usage"]

#: Linux: nanoseconds on a processor, nanoseconds of waiting for one, turns; of the thread that asks
_SCHEDSTAT = "/proc/thread-self/schedstat"
#: bytes of a block that getrusage(2) counts; other systems than Linux count operations, or nothing
_BLOCK = 512 if sys.platform == "linux" else 0

_Told = TypeVar("_Told", Usage, HostUsage)


def _kept(look: Callable[[], _Told], last: _Told) -> Callable[[], _Told]:
    """The same function; where no file can be opened just now it tells what it told last, at first `last`."""

    def usage() -> _Told:
        nonlocal last
        try:
            last = look()
        except OSError as error:
            if error.errno not in NONE_LEFT:
                raise
        return last

    return usage


def process_usage(sent: Callable[[], dict[str, int]] = dict) -> Callable[[], Usage]:
    """A function that tells what this process has taken so far; 30 us a call. `sent`: bytes that went to other hosts."""
    process = psutil.Process()

    def usage() -> Usage:
        took = resource.getrusage(resource.RUSAGE_SELF)
        read, written = _BLOCK * took.ru_inblock, _BLOCK * took.ru_oublock
        return Usage(took.ru_utime + took.ru_stime, _cpu_wait(), process.memory_info().rss, read, written, sent())

    return _kept(usage, Usage(0.0, None, 0, 0, 0, {}))


def _cpu_wait() -> float | None:
    """Seconds for which this thread could have run and had no processor; None where the system does not tell."""
    try:
        opened = os.open(_SCHEDSTAT, os.O_RDONLY)
        try:
            return int(os.read(opened, 100).split()[1]) / 1e9
        finally:
            os.close(opened)
    except (OSError, ValueError, IndexError):
        return None  # another system than Linux, or a kernel that does not count it


def host_usage(host: str) -> Callable[[], HostUsage]:
    """A function that tells how busy this host was since it was last called, and its memory: of its container where that has less left."""
    cores = len(psutil.Process().cpu_affinity()) if hasattr(psutil.Process, "cpu_affinity") else psutil.cpu_count() or 1
    psutil.cpu_percent()
    memory_limit = MemoryLimit()

    def usage() -> HostUsage:
        memory = psutil.virtual_memory()
        used, most = memory.total - memory.available, memory.total
        limited = memory_limit()
        if limited is not None and limited[1] - limited[0] < most - used:
            used, most = limited
        return HostUsage(host, cores, psutil.cpu_percent() / 100, used, most)

    return _kept(usage, HostUsage(host, cores, 0.0, 0, 0))
