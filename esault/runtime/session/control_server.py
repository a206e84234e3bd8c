"""Answers who knocks at a run's control socket, with what the driver says."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from esault.control.report.summary import Snapshot
from esault.elasticity.scaling import EVERY_UNIT
from esault.runtime.messages import ChangeUnit, DrainRun, Scaled, ScaleUnit, StopRun, Throttled, ThrottleUnit
from esault.runtime.session.control_socket import Caller, ControlSocket

__all__ = ["ControlServer"]


class ControlServer:
    """Sits in the command's loop. `tell` sends a message to the driver."""

    def __init__(
        self,
        control_socket: ControlSocket,
        name: str,
        run: str,
        tell: Callable[[Any], object],
        policies: Mapping[str, str],
    ) -> None:
        self._control_socket = control_socket
        self._about = {"topology": name, "run": run, "pid": os.getpid(), "engine": "actors"}
        self._tell = tell
        self._policies = policies
        self._snapshot: Snapshot | None = None
        self._number = 0
        self._commands: dict[int, Caller] = {}
        self._leaving: list[Caller] = []

    def seen(self, snapshot: Snapshot) -> None:
        """The run as it is."""
        self._snapshot = snapshot

    def scaled(self, message: Scaled) -> None:
        """Answer with the state of a request."""
        caller = self._commands.get(message.number)
        if caller is None:
            return
        if message.refused:
            caller.answer(error=message.refused)
        elif message.record is not None:
            record = message.record
            if record.dropped:
                caller.answer(error=f"the change was dropped: {record.dropped}; nothing is lost, try again")
            else:
                watched_by = self._policies.get(record.unit, self._policies[EVERY_UNIT])
                caller.answer(done=True, watched_by=watched_by, **asdict(record))
        elif message.unchanged:
            caller.answer(done=True, unchanged=True)
        elif message.waits:
            caller.answer(last=False, waits=message.waits)
            return
        else:
            caller.answer(last=False, begun=True)
            return
        del self._commands[message.number]

    def throttled(self, message: Throttled) -> None:
        """Answer with the outcome of a throttle."""
        caller = self._commands.pop(message.number, None)
        if caller is not None:
            caller.answer(**({"error": message.refused} if message.refused else {"done": True}))

    def serve(self) -> None:
        """Take the requests that have come."""
        while self._control_socket.callers:
            caller = self._control_socket.callers.popleft()
            request = caller.request
            if request["do"] == "status":
                now = asdict(self._snapshot) if self._snapshot is not None else {"phase": "starting", "units": []}
                caller.answer(**{**now, **self._about})
            elif request["do"] == "scale":
                self._number += 1
                self._commands[self._number] = caller
                self._tell(ScaleUnit(request["unit"], request["n"], self._number))
            elif request["do"] == "throttle":
                self._number += 1
                self._commands[self._number] = caller
                self._tell(ThrottleUnit(request["unit"], request["rate"], request["seconds"], self._number))
            elif request["do"] == "change":
                # What becomes of it stands among the notices and in the report.
                self._tell(ChangeUnit(request["unit"], request["kind"]))
                caller.answer(begun=True)
            else:
                caller.answer(last=False, begun=True)
                self._leaving.append(caller)
                self._tell(StopRun() if request.get("now") is True else DrainRun())

    def ended(self, how: str) -> None:
        """The run is over."""
        for caller in self._commands.values():
            caller.answer(error="the run ended before the change did")
        for caller in self._leaving:
            caller.answer(done=True, ended=how)
        self._control_socket.close()
