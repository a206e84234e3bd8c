"""All running topologies of this user, for a page of its own: asked over their control sockets while a browser shows them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from esault.errors import UsageError
from esault.runtime.session.control_client import Running, ask, running
from esault.ui.web.history import History

__all__ = ["OtherRuns", "Windows", "reports"]

#: seconds of a window at least
PERIOD = 1.0
#: seconds between two looks at a run
EVERY = 0.5


class OtherRuns:
    """Runs of other processes, and reports of runs that have ended."""

    def __init__(self, ended: Mapping[str, Mapping[str, Any]]) -> None:
        """`ended`: reports by the names of their files; see `reports`."""
        self._ended = ended
        self._histories: dict[str, History] = {}
        self._lock = threading.Lock()

    def list(self) -> Iterator[Mapping[str, Any]]:
        """Yield what runs now, then the reports."""
        for each in running():
            yield {"run": each.run, "topology": each.name, "control": True}
        for name, report in self._ended.items():
            yield {"run": name, "topology": report["topology"], "control": False, "report": report}

    def history(self, run: str) -> History:
        """Return what has been seen of a run since it was first asked for. Raises KeyError."""
        with self._lock:
            if run not in self._histories:
                place = next((each.control_socket for each in running() if each.run == run), None)
                if place is None:
                    raise KeyError(run)
                self._histories[run] = history = History()
                threading.Thread(target=self._follow, args=(run, place, history), daemon=True).start()
            return self._histories[run]

    def _follow(self, run: str, place: Path, history: History) -> None:
        wait = threading.Event()
        windows = Windows(history)
        while True:
            try:
                status = next(ask(place, {"do": "status"}))
                if windows.asks_for_history(status):
                    windows.begin(next(ask(place, {"do": "history"})), status)
                windows.see(status)
                history.see(status)
            except (UsageError, StopIteration):
                break
            wait.wait(EVERY)
        with self._lock:
            del self._histories[run]
        history.end()

    def running(self, run: str) -> Running:
        """Return the control socket and status of a run. Raises UsageError."""
        found = next((each for each in running() if each.run == run), None)
        if found is None:
            raise UsageError("that run has ended")
        return found

    def ask(self, run: str, request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Send a request to a run. Raises UsageError."""
        return ask(self.running(run).control_socket, dict(request), patience=60.0)


def reports(paths: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Return the reports that runs have written with --report, by the names of their files. Raises UsageError."""
    found = {}
    for path in paths:
        try:
            report = json.loads(Path(path).read_text())
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: {error}") from None
        if not isinstance(report, dict) or not isinstance(report.get("units"), dict):
            raise UsageError(f"{path} is no report of a run: esault run TOPOLOGY --report {path} writes one")
        found[path] = report
    return found


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
