"""`start`: a run in the background, and a handle on it, for notebooks and programs that go on meanwhile."""

from __future__ import annotations

import atexit
import functools
import html
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec

from esault.api.run import run
from esault.control.report.summary import Snapshot
from esault.errors import UsageError
from esault.payload.json_text import key_text
from esault.report import Report
from esault.runtime.process.log_output import short_line
from esault.runtime.session.collected import collected_so_far

__all__ = ["RunHandle", "start"]

P = ParamSpec("P")
#: lines that are kept
LINES = 1000
#: seconds that a request waits for the start of a run
STARTING = 60.0
#: seconds that the end of this program waits for a run
PATIENCE = 10.0


class RunHandle:
    """A run in the background. What it prints is in `lines`; it ends when its spouts do, by `stop`, or with this program."""

    def __init__(self, go: Callable[[RunHandle], Report], file: str | None = None) -> None:
        """Begin it. `go` runs it to its end with this handle as its view; `file`: where the topology's classes are."""
        self._file = file
        #: the newest lines: (process, text), with an empty text before it for notices
        self.lines: deque[tuple[str, str]] = deque(maxlen=LINES)
        self._snapshot: Snapshot | None = None
        self._report: Report | None = None
        self._error: BaseException | None = None
        self._seen = threading.Condition()
        self._thread = threading.Thread(target=self._run, args=(go,), name="esault-run", daemon=True)
        self._thread.start()
        atexit.register(self._leave)

    def _run(self, go: Callable[[RunHandle], Report]) -> None:
        try:
            self._report = go(self)
        except BaseException as error:
            self._error = error
            self._report = getattr(error, "report", None)
        finally:
            atexit.unregister(self._leave)
            with self._seen:
                self._seen.notify_all()

    def _leave(self) -> None:
        """End with the program: at once, since no caller is left who could wait."""
        if self.running:
            try:
                self.stop(now=True, timeout=PATIENCE)
            except Exception:
                return  # the processes of a run end when the program that began it is gone

    # as a view ---------------------------------------------------------------------------------

    def line(self, mark: str, text: str) -> None:
        """A line that a process printed."""
        self.lines.append((mark, text))

    def log(self, record: logging.LogRecord) -> bool:
        """A record that user code has logged."""
        self.lines.append(short_line(record))
        return True

    def notice(self, text: str) -> None:
        """Something the user should know."""
        self.lines.append(("", text))

    def update(self, snapshot: Snapshot) -> None:
        """The run as it is."""
        with self._seen:
            self._snapshot = snapshot
            self._seen.notify_all()

    # for users ---------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Return whether it has not ended."""
        return self._thread.is_alive()

    @property
    def report(self) -> Report | None:
        """The report of a run that has ended; None before, and where it did not begin."""
        return self._report

    def status(self, timeout: float = 60.0) -> Snapshot:
        """Return the run as it is: `.phase`, `.units`, each with `.name`, `.sub_units`, `.tuples_in`, `.p99_ms` and more.

        Waits up to `timeout` seconds for the first. Raises what the run raised where it did not begin, UsageError after `timeout`.
        """
        with self._seen:
            self._seen.wait_for(lambda: self._snapshot is not None or not self.running, timeout)
            if self._snapshot is not None:
                return self._snapshot
        self._raise()
        if not self.running:  # before it had said anything
            raise UsageError("the run has ended")
        raise UsageError(f"the run has said nothing for {timeout:g} s: it is still starting")

    def wait(self, timeout: float | None = None) -> Report:
        """Wait for its end, and return its report. Raises what the run raised, and UsageError after `timeout` seconds."""
        self._thread.join(timeout)
        if self.running:
            raise UsageError(f"the run has not ended within {timeout:g} s: stop() ends it")
        self._raise()
        assert self._report is not None
        return self._report

    def savepoint(self, name: str) -> str:
        """Take a checkpoint that is kept under `name` until it is removed, and return its folder. Raises UsageError, with the reason."""
        return str(self._ask(do="savepoint", name=name)["path"])

    def stop(self, now: bool = False, timeout: float | None = None, savepoint: str = "") -> Report:
        """End it, and return its report: in order, or with `now` without waiting for what is in flight.

        `savepoint`: a name under which its last checkpoint is kept. Raises UsageError where it cannot be.
        """
        if self.running:
            try:
                self._ask(do="stop", now=now, savepoint=savepoint)
            except UsageError:
                if savepoint or self.running:
                    raise
        elif savepoint:
            raise UsageError(f"savepoint {savepoint!r}: the run has ended")
        return self.wait(timeout)

    def scale(self, unit: str, n: int) -> dict[str, Any]:
        """Give a unit `n` sub-units, and return the record of the change: `before`, `after`, `moved_keys`, `held` (seconds).

        Raises UsageError, with the reason.
        """
        return self._ask(do="scale", unit=unit, n=n)

    def query(self, unit: str, key: Any = None, prefix: str = "", limit: int = 20) -> list[tuple[Any, Any]]:
        """Return (key, state) of a key of a unit, or of up to `limit` of its keys: the newest, as JSON has it. Raises UsageError."""
        # an empty text as a key is written as JSON: a request without one is for some keys
        typed = "" if key is None else key_text(key) or '""'
        found = self._ask(do="state", unit=unit, key=typed, prefix=prefix, limit=limit)["found"]
        return [(each["key"], each["state"]) for each in found]

    def emitted(self, unit: str) -> list[tuple[Any, Any]]:
        """Return (key, value) of all that a unit has emitted to a `Collect` sink and that is committed so far; the sink's name will do, too.

        Raises UsageError where there is none.
        """
        units = self.status().units
        names = [name for u in units for name, kind, _ in u.sinks if kind == "Collect" and unit in (u.name, name)]
        if not names:
            raise UsageError(
                f"{unit!r} has no Collect sink: say .sink(NAME, Collect()) behind the unit in the topology"
            )
        try:
            if self.running:
                return collected_so_far(str(self._place().parent), names, self._file)
        except UsageError:
            if self.running:
                raise
        self._raise()
        return [row for name in names for row in self._report.collected.get(name, ())] if self._report else []

    def throttle(self, unit: str, rate: float, seconds: float) -> None:
        """Let a unit take `rate` tuples a second for so many seconds. Raises UsageError."""
        self._ask(do="throttle", unit=unit, rate=float(rate), seconds=float(seconds))

    def _ask(self, **request: Any) -> dict[str, Any]:
        from esault.runtime.session.control_client import ask

        return list(ask(self._place(request["do"] == "stop"), request, patience=None))[-1]

    def _place(self, starting: bool = False) -> Path:
        """Return the run's control socket, in its folder; with `starting` also of a run that does not take requests yet."""
        from esault.runtime.session.control_client import running

        status = self.status()
        if not starting:
            with self._seen:  # until it runs it takes none
                self._seen.wait_for(lambda: not self.running or not self._starting, STARTING)
        deadline = time.monotonic() + PATIENCE
        while self.running:
            for each in running():
                if each.status.get("pid") == os.getpid() and each.run == status.run:
                    assert isinstance(each.control_socket, Path)
                    return each.control_socket
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)  # it is starting: its socket is not there yet
        if not self.running:
            raise UsageError("the run has ended")
        raise UsageError("this run takes no requests: those on actors do; others end by themselves, or by seconds=")

    @property
    def _starting(self) -> bool:
        return self._snapshot is None or self._snapshot.phase in ("building", "wiring", "beginning")

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def __repr__(self) -> str:
        return f"<RunHandle: {self._state()}>"

    def _state(self) -> str:
        if self._error is not None:
            return f"failed: {self._error}"
        if self._report is not None:
            return f"{self._report.topology} {self._report.ended} after {self._report.seconds:.1f} s"
        if self._snapshot is None:
            return "starting"
        return f"{self._snapshot.topology} {self._snapshot.phase} for {self._snapshot.seconds:.1f} s"

    def _repr_html_(self) -> str:
        rows = [("unit", "sub-units", "in", "out", "waiting", "p99 ms")]
        rows += [
            (u.name, str(u.sub_units), f"{u.tuples_in:,}", f"{u.tuples_out:,}", f"{u.backlog:,}", f"{u.p99_ms:.2f}")
            for u in (self._snapshot.units if self._snapshot is not None else ())
        ]
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        return f"<p>{html.escape(self._state())}</p><table>{body}</table>"


def _in_background(go: Callable[P, Report]) -> Callable[P, RunHandle]:
    @functools.wraps(go)
    def begin(*arguments: P.args, **named: P.kwargs) -> RunHandle:
        topology = arguments[0] if arguments else named.get("topology")
        file = getattr(getattr(topology, "__code__", None), "co_filename", None)
        return RunHandle(lambda handle: go(*arguments, **{**named, "view": handle}), file)  # type: ignore[arg-type]

    return begin


start = _in_background(run)
start.__name__ = start.__qualname__ = "start"
start.__doc__ = """Start a topology in the background and return a handle on it.

Takes what `run` takes. The handle has `status()`, `scale(unit, n)`, `query(unit, key)`, `emitted(unit)`, `throttle(unit, rate, seconds)`,
`savepoint(name)`, `stop()`, `wait()`, `report` and `lines`. Errors, also of wrong arguments, are raised by `status`, `wait` and `stop`.
"""
