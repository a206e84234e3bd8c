"""Answers who knocks at a run's control socket, with what the driver says."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from esault.control.report.summary import Snapshot
from esault.runtime.messages import DrainRun, StopRun
from esault.runtime.run_commands import Answered, Requested, ShowStatus, StopTopology
from esault.runtime.session.control_socket import RUN_ENDED, Caller, ControlSocket

__all__ = ["ControlServer"]


class ControlServer:
    """Sits in the command's loop. `tell` sends a message to the driver."""

    def __init__(self, control_socket: ControlSocket, name: str, run: str, tell: Callable[[Any], object]) -> None:
        self._control_socket = control_socket
        self._about = {"topology": name, "run": run, "pid": os.getpid(), "engine": "actors"}
        self._tell = tell
        self._snapshot: Snapshot | None = None
        self._number = 0
        self._commands: dict[int, Caller] = {}
        self._leaving: list[Caller] = []

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
            if isinstance(request, ShowStatus):
                now = asdict(self._snapshot) if self._snapshot is not None else {"phase": "starting", "units": []}
                caller.answer(**{**now, **self._about})
            elif isinstance(request, StopTopology):
                caller.answer(last=False, begun=True)
                self._leaving.append(caller)
                self._tell(StopRun() if request.now else DrainRun())
            elif request is not None and request.answered:
                self._number += 1
                self._commands[self._number] = caller
                self._tell(Requested(request, self._number))
            elif request is not None:
                self._tell(Requested(request))
                caller.answer(begun=True)

    def ended(self, how: str) -> None:
        """The run is over."""
        for caller in self._commands.values():
            caller.answer(error=RUN_ENDED)
        for caller in self._leaving:
            caller.answer(done=True, ended=how)
        self._control_socket.close()
