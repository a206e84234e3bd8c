"""Pythons of Spark's, forked from one that has imported what they need.

For the source of a query, and for each level of it with state, Spark starts a Python to be told what there is, and others for
rows: each imports pandas, PyArrow and the engine, half a second, and does little else in a test. `running` gives a program that
Spark takes for a Python (`PYSPARK_PYTHON`): it hands its arguments, folder, variables and streams to a process that has imported
all of that and forks, and lives as long as the fork.

Commands that run on Spark, of tests there and of the docs, have Pythons as users have them.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import marshal
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from esault_command import end

from esault.spark import worker_python

#: what Spark starts a Python for, and what its forks load for rows
IMPORTED = (
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark.daemon",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "pyspark.worker",
)
#: packages all of whose modules may be asked for
PACKAGES = ("pyspark.sql.worker", "esault.flow", "esault.spark.engine", "esault.state", "esault.topology")
#: bytes that say how long a request is, and how a process ended
LENGTH = 8
#: begins without its libraries, in a fiftieth of a second; where the server has ended, it is the Python that it stands for
PROGRAM = """#!{python} -IS
import marshal, os, sys
import _socket as s
here = s.socket(s.AF_UNIX, s.SOCK_STREAM)
try:
    here.connect({path!r})
    text = marshal.dumps((sys.argv[1:], dict(os.environ), os.getcwd()))
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    here.sendmsg([len(text).to_bytes({length}, "big")], [(s.SOL_SOCKET, s.SCM_RIGHTS, streams)])
    here.sendall(text)
except OSError:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
said = here.recv({length})
os._exit(int.from_bytes(said, "big") if said else 1)
"""


@contextlib.contextmanager
def running() -> Iterator[str]:
    """The program, as long as the process that forks."""
    place = tempfile.gettempdir()  # as short as sockets want it
    with tempfile.TemporaryDirectory(prefix="py-", dir=place if len(place) < 60 else "/tmp") as folder:
        path = str(Path(folder) / "s")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen(64)
            server = subprocess.Popen(
                [sys.executable, __file__, str(listening.fileno())],
                env={**os.environ, "PYTHONHASHSEED": "0"},  # as Spark has it for workers
                stdin=subprocess.PIPE,
                pass_fds=(listening.fileno(),),
            )
        program = Path(folder) / worker_python._PROGRAM
        program.write_text(PROGRAM.format(python=sys.executable, path=path, length=LENGTH))
        program.chmod(0o700)
        try:
            yield str(program) if os.access(program, os.X_OK) else sys.executable  # where nothing in there may be run
        finally:
            server.communicate()


def _import_all() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    for name in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            importlib.import_module(module.name)


def _serve(listening: socket.socket) -> list[str]:
    """Fork what is asked for until the standard input ends; return the arguments of a Python in the process that is to be it."""
    forks: dict[int, socket.socket] = {}
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    while True:
        ready = select.select([listening, woken, 0, *forks.values()], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            _tell(forks)
        for pid, asking in forks.items():
            if asking in ready:  # Spark has ended the program, which says nothing more otherwise
                os.kill(pid, signal.SIGTERM)
        for pid in [pid for pid, asking in forks.items() if asking in ready]:
            forks.pop(pid).close()
        if 0 in ready:
            sys.exit()
        if listening not in ready:
            continue
        asking = listening.accept()[0]
        head, streams, _, _ = socket.recv_fds(asking, LENGTH, 3)
        if len(head) < LENGTH:
            continue
        request = marshal.loads(asking.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for each in (listening, asking, *forks.values()):
                each.close()
            os.close(woken)
            os.close(wakes)
            return _become(request, streams)
        forks[pid] = asking
        for each in streams:
            os.close(each)


def _tell(forks: dict[int, socket.socket]) -> None:
    """Tell how those ended that have."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if (asking := forks.pop(pid, None)) is not None:
            with contextlib.suppress(OSError):
                asking.sendall(abs(os.waitstatus_to_exitcode(status)).to_bytes(LENGTH, "big"))
            asking.close()


def _become(request: Any, streams: list[int]) -> list[str]:
    """Take on what a Python that was started so would have; return its arguments."""
    arguments, variables, folder = request
    for number, each in enumerate(streams):
        os.dup2(each, number)
    for each in streams:
        os.close(each)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    sys.path[0:1] = [folder, *filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))]
    return arguments


if __name__ == "__main__":
    gc.disable()
    _import_all()
    gc.freeze()
    gc.enable()
    asked, module, *rest = _serve(socket.socket(fileno=int(sys.argv[1])))
    assert asked == "-m", asked
    sys.argv[1:] = rest
    sys.modules.pop(module, None)  # it is to run anew, as the main module
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        end(ended.code or 0)
    end(0)
