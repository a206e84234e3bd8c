"""A run that is scaled to zero: it pauses at a checkpoint when nothing comes, gives all slots back, and goes on when input comes.

What is left meanwhile is the command's own process. It looks at the sources, answers `esault status` and `esault stop`, and holds the
lock of the state directory.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from esault.control.report.summary import SCALED_TO_ZERO, Snapshot
from esault.errors import EsaultError, UsageError
from esault.report import Report
from esault.runtime.messages import DrainRun, StopRun
from esault.runtime.process.owner import Owner
from esault.runtime.process.run_dir import RunDir
from esault.runtime.process.signals import ending_signals, leave_terminal
from esault.runtime.run_commands import Answered, Requested
from esault.runtime.session.control_options import ControlOptions
from esault.runtime.session.control_server import ControlServer
from esault.runtime.session.control_socket import ControlSocket
from esault.runtime.session.dead_letters import dead_letter_paths
from esault.runtime.session.idle_watch import IdleWatch
from esault.runtime.session.input_watch import InputWatch, check_watched
from esault.runtime.session.open_state import open_state
from esault.runtime.session.request import Quiet, Request
from esault.runtime.session.session import Session
from esault.topology.located import Located

__all__ = ["run_scaled_to_zero"]

#: phase of one for which input has come, and no host is there to go on on
WAITING_FOR_HOSTS = "waiting for hosts"
#: what is said to those who ask while another process of it takes over
GOES_ON = "the run is going on just now: ask again"
#: seconds between two looks at the sources, and between two tries to begin, or to look, where that has failed
LOOK_EVERY, AGAIN_EVERY = 1.0, 5.0
#: seconds between two looks at who asks
SERVE_EVERY = 0.05


def run_scaled_to_zero(request: Request) -> Report:
    """Run it, as often as input comes; the report of the last time. Raises as `Session` does."""
    assert request.scale_to_zero is not None and isinstance(request.topology, Located)
    check_watched(request.topology.build(dict(request.params)).plan())
    session = Session(request, IdleWatch(request.scale_to_zero))  # until it runs a signal ends it like any command
    with _Signals() as signals:
        return _run(request, session, signals)


def _run(request: Request, first: Session, signals: _Signals) -> Report:
    until = None if request.seconds is None else time.monotonic() + request.seconds
    session: Session | None = first
    while True:
        assert session is not None
        report = session.run()
        if not session.idle or report.ended != "paused":
            return report
        left = None if until is None else until - time.monotonic()
        request = replace(
            request,
            resume=True,
            restart=False,
            from_savepoint=None,
            renames={},
            allow_dropped_state=False,
            seconds=left,
        )
        with _Waiting(request, session, signals) as waiting:
            session = waiting.until_input()
        if session is None:
            return report


class _Signals:
    """The signals that end a run, where no `Session` has them: also between the end of one and the wait for input."""

    def __init__(self) -> None:
        self.came = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        def caught(number: int, frame: FrameType | None) -> None:
            if number == signal.SIGHUP:
                leave_terminal()
            self.came = True

        with contextlib.suppress(ValueError):  # not the main thread: the caller has the signals
            self._previous = {number: signal.signal(number, caught) for number in ending_signals()}
        return self

    def __exit__(self, *exception: Any) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)


class _Waiting:
    """The time in which nothing runs."""

    def __init__(self, request: Request, session: Session, signals: _Signals) -> None:
        assert isinstance(request.topology, Located) and session.last_snapshot is not None
        self._request, self._located = request, request.topology
        self._plan, self._hosts, self._signals = session.plan, session.hosts, signals
        self._view = request.view or Quiet()
        self._last: Snapshot = session.last_snapshot
        self._began = time.monotonic()
        self._over = False
        self._phase = SCALED_TO_ZERO
        self._told = ""
        self._shown_at = 0.0

    def __enter__(self) -> _Waiting:
        self._state = open_state(self._request, self._plan, self._view.notice)
        self._run_dir = RunDir(Owner.current(), self._plan.name, self._last.run)
        self._options = ControlOptions(self._request, self._hosts)
        self._control_socket = ControlSocket(Path(self._run_dir.path))
        dead_letters = dead_letter_paths(self._plan)
        about = (self._plan.name, self._last.run, self._take, self._state, dead_letters)
        self._server = ControlServer(self._control_socket, *about, self._options.audit)
        self._control_socket.start()
        self._options.serve(self._control_socket, lambda text: None)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._server.ended("paused", GOES_ON)
        self._options.close()
        if self._state is not None:
            self._state.close()
        shutil.rmtree(self._run_dir.path, ignore_errors=True)
        self._run_dir.close()

    @property
    def _ends(self) -> bool:
        return self._over or self._signals.came

    def _take(self, message: Any) -> None:
        """Take what is asked of the run."""
        if isinstance(message, (DrainRun, StopRun)):
            self._over = True
        elif isinstance(message, Requested):
            error = "the run is scaled to zero: nothing is there that could be changed or asked until input comes"
            self._server.answered(Answered(message.number, {"error": error}, True))

    def until_input(self) -> Session | None:
        """Wait for input; the run that goes on, or None where it is to end. Raises as `Session` does."""
        assert self._state is not None and self._state.kept is not None
        number, seconds = self._state.kept.number, self._request.scale_to_zero
        self._view.notice(
            f"nothing has come for {seconds:g} s: paused at checkpoint {number}, and all slots are given back until input comes"
        )
        found = self._look()
        if found is None:
            return None
        self._view.notice(f"there is input for unit {found!r}: going on from checkpoint {number}")
        self._state.close()
        self._state = None
        return self._begin()

    def _look(self) -> str | None:
        """Return the name of a unit that has input; None: the run is to end."""
        assert self._state is not None and self._state.kept is not None
        watch: InputWatch | None = None
        try:
            while self._serve(LOOK_EVERY):
                try:
                    watch = watch or InputWatch(self._located, self._request.params, self._state.kept)
                    found = watch.found()
                    if found is not None:
                        return found
                except Exception as error:  # of user code, or a server that is away: it may come back
                    if watch is not None:
                        _close(watch.close)
                    watch = None
                    self._tell(f"the sources cannot be looked at: {error}; it is tried again")
                    self._serve(AGAIN_EVERY)
            return None
        finally:
            if watch is not None:
                _close(watch.close)

    def _begin(self) -> Session | None:
        """Return the run that goes on; None where it is to end before its hosts are there."""
        assert self._request.scale_to_zero is not None
        while True:
            self._options.close_remote()  # the port is for the run that goes on
            try:
                session = Session(self._in_time(), IdleWatch(self._request.scale_to_zero))
            except UsageError as error:
                if self._request.hosts is None:
                    raise
                self._phase = WAITING_FOR_HOSTS
                self._tell(f"there is input, and the run cannot go on yet: {error}")
            else:
                self._server.serve()  # it may have taken long to reach all hosts
                if not self._ends:
                    return session
                session.close()
                return None
            self._options.open_remote(self._request, self._hosts)
            self._options.serve(self._control_socket, lambda text: None)
            if not self._serve(AGAIN_EVERY):
                return None

    def _in_time(self) -> Request:
        """Return the request with the seconds that are left of those that it has."""
        left = self._request.seconds
        if left is None:
            return self._request
        return replace(self._request, seconds=max(0.0, left - (time.monotonic() - self._began)))

    def _tell(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self._view.notice(text)

    def _serve(self, seconds: float) -> bool:
        """Answer who asks for so long; whether the run is to go on."""
        until = time.monotonic() + seconds
        left = self._request.seconds
        while not self._ends and (now := time.monotonic()) < until:
            if left is not None and now >= self._began + left:
                self._over = True
            if now >= self._shown_at + LOOK_EVERY:
                self._shown_at = now
                shown = _at_zero(self._last, self._phase, now - self._began)
                self._view.update(shown)
                self._server.seen(shown)
            self._server.serve()
            time.sleep(SERVE_EVERY)
        return not self._ends


def _close(close: Callable[[], None]) -> None:
    try:
        close()
    except (EsaultError, OSError):
        pass


def _at_zero(last: Snapshot, phase: str, seconds: float) -> Snapshot:
    units = tuple(replace(unit, sub_units=0, processes={}, parts=(), backlog=0, oldest_roots={}) for unit in last.units)
    return replace(
        last,
        phase=phase,
        draining=False,
        seconds=seconds,
        units=units,
        hosts={},
        slots=0,
        free_slots=0,
        scaling=(),
        now=time.time(),
    )
