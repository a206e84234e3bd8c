"""Signals that end a run in order, and the terminal that may be gone by then."""

from __future__ import annotations

import os
import signal
import stat

__all__ = ["ending_signals", "leave_terminal"]


def ending_signals() -> tuple[signal.Signals, ...]:
    """Those a command catches. Under nohup a run goes on when its terminal is closed."""
    always = (signal.SIGINT, signal.SIGTERM)
    return always if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (*always, signal.SIGHUP)


def leave_terminal() -> None:
    """Print nowhere if the terminal has been closed: to write to it is an error, and the run is to end in order."""
    for number in (1, 2):
        try:
            closed = stat.S_ISCHR(os.fstat(number).st_mode) and not os.isatty(number)
        except OSError:
            continue
        if closed:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, number)
            os.close(null)
