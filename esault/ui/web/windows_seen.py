"""The timeline of a run of another process: what its driver remembers of it, and windows between two looks at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esault.ui.web.history import History

__all__ = ["Windows"]

#: seconds of a window at least
PERIOD = 1.0


class Windows:
    """Makes windows and changes of what a run answers. Widths and changes are known from its beginning, rates since the first look."""

    def __init__(self, history: History) -> None:
        self._history = history
        #: the changes that were told
        self._told = 0
        self._begun = False
        self._before: Mapping[str, Any] | None = None

    def asks_for_history(self, status: Mapping[str, Any]) -> bool:
        """Return whether the driver knows more than was told here."""
        running = status.get("phase") == "running"
        return running and (not self._begun or int(status.get("changes", 0)) > self._told)

    def begin(self, answer: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        """Take what the driver remembers: all changes, and at first the widths until now."""
        if not self._begun:
            self._begun = True
            for t in sorted({t for widths in answer["widths"].values() for t, _ in widths}):
                if t < status["seconds"]:
                    at = {name: _width(widths, t) for name, widths in answer["widths"].items()}
                    self._history.window(
                        t, {name: [None, None, None, n, None] for name, n in at.items() if n is not None}
                    )
        total = int(status.get("changes", 0))
        new = total - self._told
        for change in answer["changes"][-new:] if new > 0 else ():
            self._history.change(change)
        self._told = max(self._told, total)

    def see(self, status: Mapping[str, Any]) -> None:
        """Take the run as it is; a window ends where the last one is long enough ago."""
        if status.get("phase") != "running":
            return
        before = self._before
        if before is None:
            self._before = status
            return
        seconds = status["seconds"] - before["seconds"]
        if seconds < PERIOD:
            return
        self._before = status
        old = {unit["name"]: unit for unit in before["units"]}
        units = {}
        for unit in status["units"]:
            name = "tuples_out" if unit["kind"] == "spout" else "tuples_in"
            was = old.get(unit["name"], unit)
            rate = max(0, unit[name] - was[name]) / seconds
            # latency is that of the whole run: nothing else is told from outside
            units[unit["name"]] = [rate, unit["p50_ms"], unit["p99_ms"], unit["sub_units"], unit["backlog"]]
        self._history.window(status["seconds"], units)


def _width(widths: list[list[float]], t: float) -> float | None:
    return next((n for since, n in reversed(widths) if since <= t), None)
