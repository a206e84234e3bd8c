"""Records in JSON, for services: on standard error is nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable

from esault.control.report.summary import Snapshot
from esault.runtime.process.log_output import PRINTED, JsonFormatter, say
from esault.ui.plain import ProgressLines

__all__ = ["JsonView"]

#: seconds between two records of how the run stands
EVERY = 10.0


class JsonView:
    """Prints user code's lines to stdout. Notices and how the run stands are records of the handler."""

    def __init__(self, handler: logging.Handler, began: Callable[[Snapshot], None] | None = None) -> None:
        """`handler` writes JSON. With `began`, which is told of the first snapshot, lines are records as well."""
        self._handler = handler
        self._began = began
        self._progress = ProgressLines(EVERY)
        self._topology = ""

    def line(self, mark: str, text: str) -> None:
        """A line that a process printed."""
        if self._began is None:
            print(f"[{mark}] {text}", flush=True)
            return
        unit, _, number = mark.rpartition("/")
        about = {"unit": unit, "sub_unit": int(number)} if unit and number.isdigit() else {"unit": mark}
        say(self._handler, PRINTED, text, about=about)

    def notice(self, text: str) -> None:
        """Something the user should know, whatever the level."""
        say(self._handler, "esault.run", text)

    def update(self, snapshot: Snapshot) -> None:
        """The run as it is; told at the level info."""
        formatter = self._handler.formatter
        if not self._topology and isinstance(formatter, JsonFormatter):
            self._topology = snapshot.topology
            formatter.about = {"run": snapshot.run, "topology": snapshot.topology}
            if self._began is not None:
                self._began(snapshot)
        text = self._progress.next(snapshot)
        if text and logging.getLogger("esault.progress").isEnabledFor(logging.INFO):
            say(self._handler, "esault.progress", text)
