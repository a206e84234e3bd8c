"""The choice of a run's view."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator

from esault.control.report.summary import Snapshot
from esault.runtime.process.log_output import JsonFormatter
from esault.runtime.session.request import View
from esault.ui.shielded import ShieldedView

__all__ = ["choose"]

#: terminals on which nothing can be drawn anew, as rich knows them
_WITHOUT_CURSOR = ("dumb", "unknown")


@contextlib.contextmanager
def choose(
    plain: bool, log: logging.Handler | None = None, began: Callable[[Snapshot], None] | None = None
) -> Iterator[View]:
    """The live view on a terminal that can be drawn on, lines elsewhere; records where `log` writes JSON, which `began` is about (see `JsonView`)."""
    chosen: View
    if log is not None and isinstance(log.formatter, JsonFormatter):
        from esault.ui.json_view import JsonView

        chosen = JsonView(log, began)
    elif plain or not sys.stdout.isatty() or os.environ.get("TERM") in _WITHOUT_CURSOR:
        from esault.ui.plain import PlainView

        chosen = PlainView()
    else:
        from esault.ui.live import LiveView

        chosen = LiveView()
    view = ShieldedView(chosen)
    try:
        yield view
    finally:
        view.close()
