"""Answers who knocks at a run's control socket, with what the driver says."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from esault.control.report.summary import Snapshot
from esault.errors import EsaultError, UsageError
from esault.runtime.messages import DrainRun, StopRun
from esault.runtime.run_commands import Answered, Requested, ShowStatus, StopTopology
from esault.runtime.session.control_socket import RUN_ENDED, Caller, ControlSocket
from esault.state.run_state import RunState

if TYPE_CHECKING:
    from esault.cluster.audit import AuditLog

__all__ = ["ControlServer"]


class ControlServer:
    """Sits in the command's loop. `tell` sends a message to the driver; `state`: where savepoints are kept."""

    def __init__(
        self,
        control_socket: ControlSocket,
        name: str,
        run: str,
        tell: Callable[[Any], object],
        state: RunState | None = None,
        dead_letters: Sequence[str] = (),
        audit: AuditLog | None = None,
    ) -> None:
        """`dead_letters`: the paths where units keep them."""
        self._audit = audit
        self._state = state
        self._control_socket = control_socket
        about = {"topology": name, "run": run, "pid": os.getpid(), "engine": "actors"}
        self._about = {**about, "dead_letter_paths": list(dead_letters)}
        self._tell = tell
        self._snapshot: Snapshot | None = None
        self._number = 0
        self._commands: dict[int, Caller] = {}
        #: who waits for the end, and the name under which the last checkpoint is to be kept
        self._leaving: list[tuple[Caller, str]] = []

    @property
    def leaving(self) -> bool:
        """Return whether a caller has asked for the end."""
        return bool(self._leaving)

    def seen(self, snapshot: Snapshot) -> None:
        """The run as it is."""
        self._snapshot = snapshot

    def answered(self, message: Answered) -> None:
        """Pass on what the driver says to a request."""
        caller = self._commands.get(message.number)
        if caller is None:
            return
        caller.answer(last=message.last, **message.said)
        if message.last:
            del self._commands[message.number]

    def serve(self) -> None:
        """Take the requests that have come."""
        while self._control_socket.callers:
            caller = self._control_socket.callers.popleft()
            request = caller.request
            if self._audit is not None and request is not None:
                self._audit.write(caller.who, caller.address, request.do, "accepted", **vars(request))
            if isinstance(request, ShowStatus):
                now = asdict(self._snapshot) if self._snapshot is not None else {"phase": "starting", "units": []}
                caller.answer(**{**now, **self._about})
            elif isinstance(request, StopTopology):
                self._stop(caller, request)
            elif request is not None and request.answered:
                self._number += 1
                self._commands[self._number] = caller
                self._tell(Requested(request, self._number))
            elif request is not None:
                self._tell(Requested(request))
                caller.answer(begun=True)

    def _stop(self, caller: Caller, request: StopTopology) -> None:
        if request.savepoint:
            try:
                if self._state is None:
                    raise UsageError(
                        "this run has no checkpoints, and so no savepoint: it was begun without --checkpoint"
                    )
                if request.now:
                    raise UsageError("a savepoint is taken at an end in order: leave one of them out")
                self._state.check_savepoint(request.savepoint)
            except UsageError as error:  # the run goes on
                caller.answer(error=str(error))
                return
        caller.answer(last=False, begun=True)
        self._leaving.append((caller, request.savepoint))
        self._tell(StopRun() if request.now else DrainRun())

    def ended(self, how: str, unheard: str = "the run has ended") -> None:
        """The run is over. `unheard` is the error for those whose requests were not taken."""
        for caller in self._commands.values():
            caller.answer(error=RUN_ENDED)
        for caller, savepoint in self._leaving:
            caller.answer(**(self._kept(savepoint, how) if savepoint else {"done": True, "ended": how}))
        self._control_socket.close(unheard)

    def _kept(self, savepoint: str, how: str) -> dict[str, Any]:
        """Keep the last checkpoint under a name, and return what there is to say."""
        if self._state is None or how not in ("paused", "drained"):
            return {"error": f"the run {how}: there is no savepoint {savepoint!r}"}
        try:
            return {"done": True, "ended": how, "path": str(self._state.savepoint(savepoint))}
        except EsaultError as error:
            return {"error": f"the run has ended ({how}), and no savepoint was made: {error}"}
