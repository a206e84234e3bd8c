"""A view that cannot stop a run: what is shown may go to a pipe whose reader leaves, or to a disk that fills."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Callable
from typing import Any

from esault.control.report.summary import Snapshot
from esault.runtime.session.request import View

__all__ = ["ShieldedView"]


class ShieldedView:
    """Hands everything on to another view. What cannot be shown is left out; when the reader has gone for good, the run is
    asked once to end in order, as by SIGTERM."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._gone = False

    def line(self, mark: str, text: str) -> None:
        """A line that a process printed."""
        self._show(self._view.line, mark, text)

    def notice(self, text: str) -> None:
        """Something the user should know."""
        self._show(self._view.notice, text)

    def update(self, snapshot: Snapshot) -> None:
        """The run as it is."""
        self._show(self._view.update, snapshot)

    def close(self) -> None:
        """Take away what stands on the terminal, where something does."""
        close = getattr(self._view, "close", None)
        if close is not None:
            with contextlib.suppress(OSError):
                close()

    def _show(self, show: Callable[..., None], *what: Any) -> None:
        if self._gone:
            return
        try:
            show(*what)
        except OSError as error:
            if error.errno != errno.EPIPE:
                return
            self._gone = True
            if callable(signal.getsignal(signal.SIGTERM)):  # a run is under way, and hears it
                os.kill(os.getpid(), signal.SIGTERM)
