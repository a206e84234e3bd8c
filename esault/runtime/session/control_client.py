"""Running topologies of this user, found by their control sockets; and those of other machines that are named by their address."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from esault.errors import UsageError
from esault.runtime.process.run_dir import living_run_dirs, name_of
from esault.runtime.session.control_socket import NAME
from esault.runtime.session.detached import any_begins
from esault.value_class import value_class

__all__ = ["Running", "ask", "choose", "is_address", "running", "silent"]

#: seconds that an answer to a question may take
PATIENCE = 5.0
#: the environment's name for the file of the key that is shown to runs of other machines
KEY = "ESAULT_KEY"
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[\w.-]+):\d+")


@value_class(frozen=True)
class RemoteRun:
    """The place where a run of another machine hears requests: `esault run --control`."""

    address: str

    def connect(self) -> socket.socket:
        """Return a connection. Raises OSError, UsageError."""
        from esault.cluster.address import split
        from esault.cluster.key import ClusterKey, loopback_key

        key = ClusterKey(os.environ.get(KEY) or loopback_key())
        return key.client.wrap_socket(socket.create_connection(split(self.address), PATIENCE))


@value_class(frozen=True)
class Running:
    """One running topology."""

    control_socket: Path | RemoteRun
    #: what it says of itself
    status: dict[str, Any]

    @property
    def name(self) -> str:
        """The topology's name."""
        return str(self.status["topology"])

    @property
    def run(self) -> str:
        """The run's identity."""
        return str(self.status["run"])

    def is_called(self, name: str) -> bool:
        """Return whether `name` is the topology's name, or the beginning of the run's identity."""
        return _is_called(name, self.name, self.run)


def _is_called(name: str, topology: str, run: str) -> bool:
    return bool(name) and (topology == name or run.startswith(name))


def is_address(name: str) -> bool:
    """Return whether it is HOST:PORT, where the run of another machine hears requests."""
    return _ADDRESS.fullmatch(name) is not None


def _connected(control_socket: Path | RemoteRun) -> socket.socket:
    if isinstance(control_socket, RemoteRun):
        return control_socket.connect()
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(PATIENCE)
        made.connect(str(control_socket))
    except OSError:
        made.close()
        raise
    return made


def ask(
    control_socket: Path | RemoteRun, request: dict[str, Any], patience: float | None = PATIENCE
) -> Iterator[dict[str, Any]]:
    """Send a request; answers as they come. Raises UsageError when no run answers, or the answer is an error."""
    try:
        with _connected(control_socket) as connection:
            connection.sendall(json.dumps(request).encode() + b"\n")
            connection.settimeout(patience)
            with connection.makefile("rb") as lines:
                for line in lines:
                    answer = json.loads(line)
                    if "error" in answer:
                        raise UsageError(str(answer["error"]))
                    yield answer
    except (OSError, ValueError) as error:
        raise UsageError(f"the running topology does not answer: {error}") from None


def running() -> list[Running]:
    """All of them, in the order of their start."""
    found = []
    for folder in living_run_dirs():
        control_socket = folder / NAME
        if control_socket.exists():
            try:
                found.append(Running(control_socket, next(ask(control_socket, {"do": "status"}))))
            except (UsageError, StopIteration):
                continue  # it is starting, or has just ended
    return sorted(found, key=lambda r: r.run)


def silent(found: Sequence[Running]) -> list[tuple[str, str]]:
    """Return the topology and the id of each run that is there and not among those that answer: it is starting, ending, or frozen."""
    answering = {each.run for each in found}
    names = [name for folder in living_run_dirs() if (name := name_of(folder)) is not None]
    return sorted({(topology, run) for topology, run in names if run not in answering}, key=lambda each: each[1])


def _found(
    name: str | None, wait: Callable[[float], object], now: Callable[[], float]
) -> tuple[list[Running], list[tuple[str, str]]]:
    """Return those that answer, and those that may be meant and do not.

    One that is starting is waited for, where it is or may be the one that is meant: on a busy machine it takes seconds.
    """
    until = now() + PATIENCE
    while True:
        found = running()
        others = [each for each in silent(found) if name is None or _is_called(name, *each)]
        meant = [each for each in found if name is None or each.is_called(name)]
        clear = len(meant) == 1 or (name is None and len(meant) > 1)
        if now() >= until or (not others and (clear or not any_begins())):
            return found, others
        wait(0.05)


def choose(
    name: str | None, wait: Callable[[float], object] = time.sleep, now: Callable[[], float] = time.monotonic
) -> Running:
    """The one that is meant. Raises UsageError with one clear line."""
    if name is not None and is_address(name):
        there = RemoteRun(name)
        return Running(there, next(ask(there, {"do": "status"}), {}))
    found, others = _found(name, wait, now)
    chosen = [r for r in found if name is None or r.is_called(name)]
    known = ", ".join(
        [f"{r.name} ({r.run})" for r in found]
        + [f"{topology} ({run}, which does not answer just now)" for topology, run in others]
    )
    if not found and not others:
        raise UsageError("no topology is running (of this user, on this machine); start one with `esault run`")
    if len(chosen) + len(others) > 1:
        raise UsageError(
            f"several topologies are running: {known}; say which with --run NAME or the beginning of its id"
        )
    if others:
        ((topology, run),) = others
        raise UsageError(
            f"{topology} ({run}) does not answer just now: it is starting, ending, or stands still; try again in a moment"
        )
    if not chosen:
        raise UsageError(f"no running topology is named {name!r}; there are: {known}")
    return chosen[0]
