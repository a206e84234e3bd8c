"""The end of a process, as its parent knows it, and what to look for."""

from __future__ import annotations

import signal
from multiprocessing import connection  # noqa: F401  `join` imports it at its first call, when no file may be opened
from multiprocessing.process import BaseProcess

__all__ = ["LAST_THREADS", "exit_code", "how_ended"]

#: seconds that the threads of a process may take to end after it
LAST_THREADS = 0.5

_CRASHES = {"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS"}


def exit_code(child: BaseProcess, patience: float = 0.0) -> int | None:
    """Return the exit code of a process that is gone; None where it cannot be known, or not within `patience` seconds.

    One with several threads is seen to be gone when the first of them is, and can be asked only when the last is.
    """
    child.join(patience)
    return child.exitcode


def how_ended(code: int | None) -> str:
    """In words: an exit code, the negative of a signal, or None where it is unknown."""
    if code is None:
        return "its process is gone"
    if code >= 0:
        return f"it ended itself with exit code {code}: look for what calls exit in it"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name == "SIGKILL":
        return "killed by SIGKILL: by hand, or by the system for want of memory"
    if name in _CRASHES:
        return f"{name}: native code in it crashed"
    return f"ended by {name}"
