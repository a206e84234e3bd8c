"""The end of a process, as its parent knows it, and what to look for."""

from __future__ import annotations

import signal
from multiprocessing.process import BaseProcess
from typing import Any

__all__ = ["LAST_THREADS", "exit_code", "how_ended", "newest_child"]

#: seconds that the threads of a process may take to end after it
LAST_THREADS = 0.5

_CRASHES = {"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS"}


def newest_child(actor: Any) -> BaseProcess | None:
    """The process of the actor that this one made last; None where this Thespian does not tell.

    Thespian reaps its children; what they ended with is kept in these objects alone (`MultiProcReplicator._child_procs`, 4.0.1).
    """
    children = getattr(getattr(actor, "_myRef", None), "_child_procs", None)
    process = getattr(children[-1], "childProc", None) if children else None
    return process if isinstance(process, BaseProcess) else None


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
