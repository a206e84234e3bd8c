"""The control socket of a running topology: a socket in its own folder, for `esault status`, `scale`, `throttle` and `stop` from another terminal.

Only this user can enter the folder. A connection carries one request, a line of JSON, and answers, lines of JSON; what is no
request is answered with one error and changes nothing.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import struct
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from esault.payload.json_text import strict_json
from esault.runtime.run_commands import RunCommand, parse

__all__ = ["LONGEST", "MOST", "NAME", "RUN_ENDED", "Caller", "ControlSocket", "read_request"]

#: the socket's name in the run's folder
NAME = "control"
#: answer to a command on a run that ended meanwhile
RUN_ENDED = "the run ended before the change did; with checkpoints, --resume goes on as wide as the last one was"
#: bytes of a request, seconds that it may take to come, connections at a time; dead letters that are sent again are long
LONGEST, PATIENCE, MOST = 4 * 2**20, 2.0, 16
#: seconds between two looks whether the socket's file is there
LOOK_EVERY = 1.0
_NO_ROOM = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class Caller:
    """One connection with a request that is waiting to be answered. Answers to who has hung up are dropped."""

    def __init__(self, connection: socket.socket, who: str, address: str = "") -> None:
        """`who` and `address` are for the audit log."""
        self._connection = connection
        self.who, self.address = who, address
        #: what is asked for, once it has been read
        self.request: RunCommand | None = None

    def answer(self, last: bool = True, **answer: Any) -> None:
        """Send a line; after the last one the connection is closed."""
        with contextlib.suppress(OSError):
            self._connection.sendall(strict_json(answer).encode() + b"\n")
        if last:
            self.hang_up()

    def hang_up(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._connection.close()


class ControlSocket(threading.Thread):
    """Accepts; requests wait in `callers` for the owner of the run."""

    def __init__(self, run_dir: Path) -> None:
        super().__init__(name="esault-control", daemon=True)
        self._path = run_dir / NAME
        self._socket = self._listening()
        self._closing = threading.Lock()
        self._closed = False
        self._places = threading.Semaphore(MOST)
        self.callers: deque[Caller] = deque()

    def _listening(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.bind(str(self._path))
            os.chmod(self._path, 0o600)
        except OSError:
            made.close()
            raise
        made.listen(MOST)
        made.settimeout(LOOK_EVERY)
        return made

    def _mend(self) -> None:
        """Make the socket again if its file was removed by another program."""
        with self._closing:
            if not self._closed and not self._path.exists():
                with contextlib.suppress(OSError):  # its folder is gone as well, which the command looks after
                    made = self._listening()
                    self._socket.close()
                    self._socket = made

    def run(self) -> None:
        """The thread."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                self._mend()
                continue
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    return  # closed
                time.sleep(0.1)  # who asks waits that long, or for as long as the command has no descriptor left
                continue
            if not self._places.acquire(blocking=False):
                connection.close()
                continue
            try:
                threading.Thread(target=self._read, args=(connection,), daemon=True).start()
            except RuntimeError:  # no further thread is allowed: callers are heard one after the other
                self._read(connection)

    def _read(self, connection: socket.socket) -> None:
        caller = Caller(connection, _who(connection))
        try:
            connection.settimeout(PATIENCE)
            caller.request = read_request(connection)
        except (OSError, ValueError) as error:
            caller.answer(error=f"no request: {error}")
        else:
            self.callers.append(caller)
        finally:
            self._places.release()

    def close(self, unheard: str = "the run has ended") -> None:
        """Let no caller in any more. `unheard` is the error for those whose requests were not taken."""
        with self._closing:
            self._closed = True
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            with contextlib.suppress(OSError):
                self._path.unlink()
        while self.callers:
            self.callers.popleft().answer(error=unheard)


def _who(connection: socket.socket) -> str:
    """A process of this user, or root."""
    if not hasattr(socket, "SO_PEERCRED"):
        return "this machine"
    pid, uid, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    )
    return f"uid {uid} pid {pid}"


def read_request(connection: socket.socket) -> RunCommand:
    """The request that comes. Raises ValueError for what is none, OSError."""
    data = b""
    while not data.endswith(b"\n"):
        part = connection.recv(65_536)
        data += part
        if not part or len(data) > LONGEST:
            break
    return _request(data)


def _request(data: bytes) -> RunCommand:
    """Raises ValueError for what is none."""
    if not data.endswith(b"\n") or len(data) > LONGEST:
        raise ValueError(f"a request is one line of JSON of at most {LONGEST} bytes")
    return parse(json.loads(data))
