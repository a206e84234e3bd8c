"""Commands of esault as processes of their own, forked from one that has imported the engine already.

Half of a short run is imports, and tests start a thousand of them. So each worker of the tests has a process that imports the
engine once, and forks for each command: with its folder, variables, streams and arguments, as `python -m esault` would have them.
There are two such processes, which take turns: what two commands of a test have in common, as when one resumes the other, is not
Python's seed for hashes.

What shows the start itself, a host or an installed wheel starts a Python, as users do.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import itertools
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from esault import value_class
from esault.cluster import versions
from esault.runtime.process.title import set_title

__all__ = ["end", "run", "start"]

ROOT = str(Path(__file__).parents[2])
#: what a run and its processes import, and other commands: these with all modules that are in them, unless a library comes with one
IMPORTED = (
    "esault.cli",
    "esault.cluster",
    "esault.control",
    "esault.elasticity",
    "esault.flow",
    "esault.messages",
    "esault.object_store",
    "esault.payload",
    "esault.routing",
    "esault.runtime",
    "esault.sinks",
    "esault.sources",
    "esault.state",
    "esault.topology",
    "esault.ui",
)
#: parts of libraries that they ask for when they need them
OF_LIBRARIES = (
    "encodings.idna",
    "multiprocessing.connection",
    "multiprocessing.popen_fork",
    "setproctitle",
    "thespian.system.transport.TCPTransport",
)
#: modules of the engine that bring a library
NOT_IMPORTED = ("esault.control.elasticity", "esault.ui.otlp")
#: variables that Python itself reads when it begins
OF_PYTHON = ("PYTHON", "LC_", "LANG")
#: bytes that say how long a request is
LENGTH = 8


class Server:
    """A process that forks commands, and tells how they ended."""

    def __init__(self) -> None:
        self._here, there = socket.socketpair()
        with there:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(there.fileno())],
                env={**os.environ, "PYTHONPATH": ROOT},
                stdin=subprocess.DEVNULL,
                pass_fds=(there.fileno(),),
            )

    def fork(self, request: dict[str, Any], streams: list[int]) -> tuple[int, int]:
        """Fork a command with these three streams; return its pid, and a pipe that will say how it ended."""
        told, tells = os.pipe()
        try:
            text = json.dumps(request).encode()
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [*streams, tells]))]
            self._here.sendmsg([len(text).to_bytes(LENGTH, "big")], rights)
            self._here.sendall(text)
        finally:
            os.close(tells)
        return int.from_bytes(os.read(told, LENGTH), "big"), told


class Forked(subprocess.Popen[str]):
    """A command that a server has forked. It is no child of this process: a pipe says how it ended."""

    _told = -1

    def __init__(self, arguments: list[str], *, cwd: Any, env: dict[str, str], session: bool, **options: Any) -> None:
        self._request = {"arguments": arguments, "cwd": os.path.abspath(cwd or "."), "env": env, "session": session}
        super().__init__(arguments, text=True, **options)

    def _execute_child(self, *arguments: Any) -> None:
        # As subprocess has called it since 3.10: with the ends of three pipes, of which the command takes one each.
        ends = arguments[10:16]
        own = (ends[0], ends[3], ends[5])
        streams = [number if each == -1 else each for number, each in enumerate(own)]
        self.pid, self._told = next(_turns()).fork(self._request, streams)
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        return self.returncode if self._told == -1 else self._heard(0)

    def _wait(self, timeout: float | None) -> int:
        if self._told != -1 and self._heard(timeout) is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def _heard(self, seconds: float | None) -> int | None:
        """Return how it ended, if that is told within so many seconds."""
        if not select.select([self._told], [], [], seconds)[0]:
            return None
        status = os.read(self._told, LENGTH)
        assert status, "the process that forks commands has ended"
        os.close(self._told)
        self._told = -1
        self.returncode = os.waitstatus_to_exitcode(int.from_bytes(status, "big"))
        return self.returncode


_servers: dict[int, Iterator[Server]] = {}


def _turns() -> Iterator[Server]:
    """Return the servers of this process, in turns; a fork of it has its own."""
    if os.getpid() not in _servers:
        _servers[os.getpid()] = itertools.cycle([Server(), Server()])
    return _servers[os.getpid()]


def start(
    *arguments: str, cwd: Any = None, env: dict[str, str] | None = None, session: bool = False, **streams: Any
) -> subprocess.Popen[str]:
    """Start `esault` with these arguments. `session`: in a session of its own; `streams` are those of subprocess.Popen."""
    variables = {**os.environ, "PYTHONPATH": ROOT} if env is None else env
    if _of_python(variables) != _of_python({**os.environ, "PYTHONPATH": ROOT}):
        asked = [sys.executable, "-m", "esault", *arguments]
        return subprocess.Popen(asked, cwd=cwd, env=variables, start_new_session=session, text=True, **streams)
    return Forked(list(arguments), cwd=cwd, env=variables, session=session, **streams)


def run(
    *arguments: str, cwd: Any = None, env: dict[str, str] | None = None, timeout: float = 200, stdin: Any = None
) -> tuple[int, str, str]:
    """Run `esault` with these arguments; return its exit code, output and errors."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(*arguments, cwd=cwd, env=env, stdin=stdin, **pipes) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return process.returncode, out, err


def _of_python(variables: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(OF_PYTHON)}


def _import_all() -> None:
    """Import what a command would when it needs it, most of it behind its start."""
    for name in IMPORTED:
        room = importlib.import_module(name)
        for module in pkgutil.walk_packages(room.__path__, f"{name}."):
            if module.name not in NOT_IMPORTED:
                importlib.import_module(module.name)
    for name in OF_LIBRARIES:
        importlib.import_module(name)
    value_class.prepare_now(*value_class._uncompiled)
    versions.installed()  # nodes and drivers of hosts tell it, which is to read all modules


def _serve(control: socket.socket) -> list[str]:
    """Fork what is asked for until the tests are over; return the arguments of a command in the process that is to be it."""
    tells: dict[int, int] = {}
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    while True:
        ready = select.select([control, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            _tell(tells)
        if control not in ready:
            continue
        head, streams, _, _ = socket.recv_fds(control, LENGTH, 4)
        if not head:
            sys.exit()
        request = json.loads(control.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for each in (control.detach(), woken, wakes, streams.pop(), *tells.values()):
                os.close(each)
            _become(request, streams)
            return [str(each) for each in request["arguments"]]
        tells[pid] = streams.pop()
        for each in streams:
            os.close(each)
        os.write(tells[pid], pid.to_bytes(LENGTH, "big"))


def _tell(tells: dict[int, int]) -> None:
    """Tell how those ended that have."""
    while tells:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        pipe = tells.pop(pid)
        try:
            os.write(pipe, status.to_bytes(LENGTH, "big"))
        except BrokenPipeError:  # its test did not wait for it
            pass
        os.close(pipe)


def _opened(stream: Any, mode: str, buffering: int = -1) -> Any:
    return open(stream.fileno(), mode, buffering, stream.encoding, stream.errors, closefd=False)


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Take on what a Python that was started for this command would have."""
    for number, each in enumerate(streams):
        os.dup2(each, number)
    for each in streams:
        os.close(each)
    # made anew: those of the server know what its own are, such as whether there is a place to go back to
    sys.stdin = sys.__stdin__ = _opened(sys.stdin, "r")
    sys.stdout = sys.__stdout__ = _opened(sys.stdout, "w")
    sys.stderr = sys.__stderr__ = _opened(sys.stderr, "w", 1)
    if request["session"]:
        os.setsid()
    set_title(" ".join((sys.executable, "-m", "esault", *request["arguments"])))
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.path[0] = request["cwd"]


def end(code: int) -> NoReturn:
    """End as a Python does, but do not take the modules apart: each page on which an object of theirs is would be copied."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)  # Python knows what to say of it
    os._exit(code)


if __name__ == "__main__":
    gc.disable()
    _import_all()
    set_title("esault commands of tests")  # where a title goes is found beside the first variables that a process has
    gc.freeze()
    gc.enable()
    sys.argv[1:] = _serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        runpy.run_module("esault", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        end(ended.code or 0)
