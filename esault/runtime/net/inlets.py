"""Inlets of a process: two listening sockets of Unix, read when there is something, frame by frame.

In a run on several hosts each has a second one beside it, for senders of other hosts (`secure_inlets`).
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from esault.runtime.net.links import HEADER, LONGEST_FRAME, PREFACE

__all__ = ["LOOK_EVERY", "Connection", "Inlet", "Inlets", "remove_files"]

#: bytes that are read from a connection at a time
AT_ONCE: Final = 512 << 10
#: connections that wait to be accepted
BACKLOG: Final = 4096
#: seconds; longer waits may be a millisecond too long
SHORT: Final = 0.02
#: descriptors of a process that `Inlets` tells of at a time
WATCHED: Final = 8
#: seconds between two looks whether the files of the sockets are there
LOOK_EVERY: Final = 1.0

#: takes a frame; what it keeps of it must be a copy
Take = Callable[[memoryview], None]


class Connection:
    """One sender, and what has come of a frame that is not whole yet."""

    __slots__ = ("got", "greeted", "head", "part", "socket")

    def __init__(self, made: socket.socket) -> None:
        self.socket = made
        self.greeted = False
        #: bytes of a preface or header that is not whole
        self.head = b""
        #: the frame that is not whole, and how much of it there is
        self.part: bytearray | None = None
        self.got = 0


class Inlet:
    """One listening socket with its connections. The file of its endpoint goes with it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.endpoint = f"unix:{path}"
        self._connections: dict[int, Connection] = {}
        self._poll = select.epoll()
        self._listen()
        self._buffer = bytearray(AT_ONCE)
        self._view = memoryview(self._buffer)

    def _listen(self) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.setblocking(False)
        try:
            listener.bind(self._path)
        except OSError:
            listener.close()
            raise
        listener.listen(BACKLOG)
        self._listener = listener
        self._poll.register(listener, select.EPOLLIN)

    def mend(self) -> bool:
        """Make the file again if another program has removed it; whether it was made. 2 us.

        Senders that are connected go on as they are. Those that call meanwhile try again.
        """
        if os.path.exists(self._path):
            return False
        before = self._listener
        try:
            self._listen()
        except OSError:  # its folder is gone as well, which the command looks after
            return False
        # No sender can call the old one any more. Those that wait there have sent already, and take it for received.
        with contextlib.suppress(OSError):
            deque(self._let_in(before), 0)
        self._poll.unregister(before)
        before.close()
        return True

    def fileno(self) -> int:
        """Can be read when something comes in."""
        return self._poll.fileno()

    def wait(self, seconds: float) -> None:
        """Until something comes in, or so long, to the millisecond."""
        self._poll.poll(seconds, 1)

    def read(self, take: Take) -> bool:
        """Give `take` the frames that have come, some of each sender; whether there were any."""
        came = False
        listening = self._listener.fileno()
        for number, _ in self._poll.poll(0):
            if number == listening:
                came = self._accept(take) or came
            else:
                came = self._receive(self._connections[number], take) or came
        return came

    def _accept(self, take: Take) -> bool:
        came = False
        for connection in self._let_in(self._listener):
            came = self._receive(connection, take) or came
        return came

    def _let_in(self, listener: socket.socket) -> Iterator[Connection]:
        """Accept those that wait, one by one."""
        with contextlib.suppress(BlockingIOError):
            while True:
                made, _ = listener.accept()
                made.setblocking(False)
                connection = self._connections[made.fileno()] = Connection(made)
                self._poll.register(made, select.EPOLLIN)
                yield connection

    def _receive(self, connection: Connection, take: Take) -> bool:
        room = self._room(connection)
        try:
            size = connection.socket.recv_into(room)
        except BlockingIOError:
            return False
        except OSError:
            size = 0
        if not size:
            self._hang_up(connection)
            return False
        return self._got(connection, size, take)

    def _room(self, connection: Connection) -> memoryview:
        """Return the buffer for this sender's next bytes."""
        if connection.part is not None:
            return memoryview(connection.part)[connection.got :]
        head = connection.head
        if not head:
            return self._view
        self._view[: len(head)] = head
        return self._view[len(head) :]

    def _got(self, connection: Connection, size: int, take: Take) -> bool:
        """So many bytes stand in the room; whether a frame was whole."""
        if connection.part is None:
            return self._cut(connection, size + len(connection.head), take)
        connection.got += size
        if connection.got < len(connection.part):
            return False
        part, connection.part = connection.part, None
        take(memoryview(part))
        return True

    def _cut(self, connection: Connection, end: int, take: Take) -> bool:
        """The first `end` bytes of the buffer are this sender's: give on whole frames, keep the rest."""
        view, at, came = self._view, 0, False
        connection.head = b""
        if not connection.greeted:
            at = self._greeting(connection, view[:end])
            if not at:
                return False
            connection.greeted = True
        while end - at >= HEADER.size:
            (length,) = HEADER.unpack_from(view, at)
            if length > LONGEST_FRAME:
                self._hang_up(connection)
                return came
            at += HEADER.size
            if at + length > end:
                connection.part = bytearray(length)
                connection.got = end - at
                connection.part[: connection.got] = view[at:end]
                return came
            take(view[at : at + length])
            came = True
            at += length
        connection.head = bytes(view[at:end])
        return came

    def _greeting(self, connection: Connection, said: memoryview) -> int:
        """The length of what a sender says first; 0: it is not all there yet, or wrong, and the sender is gone."""
        if len(said) < len(PREFACE):
            connection.head = bytes(said)
            return 0
        if bytes(said[: len(PREFACE)]) != PREFACE:
            self._hang_up(connection)
            return 0
        return len(PREFACE)

    def _hang_up(self, connection: Connection) -> None:
        del self._connections[connection.socket.fileno()]
        self._poll.unregister(connection.socket)
        connection.socket.close()

    def close(self) -> None:
        """Close all, and remove the file."""
        for connection in list(self._connections.values()):
            self._hang_up(connection)
        self._poll.close()
        self._listener.close()
        with contextlib.suppress(OSError):
            os.unlink(self._path)


def _paths(folder: str, incarnation: int) -> tuple[str, str]:
    return os.path.join(folder, f"{incarnation}.data"), os.path.join(folder, f"{incarnation}.express")


def remove_files(folder: str, incarnation: int) -> None:
    """Remove the files of one that was killed and could not do so itself."""
    for path in _paths(folder, incarnation):
        with contextlib.suppress(OSError):
            os.unlink(path)


class Inlets:
    """The two ways into a process: data, which is left alone while the inbox is full, and what must never wait behind data.

    Endpoints are files in the run's own folder, which only this user may enter, named by incarnation: no other
    life of a sub-unit ever uses them.
    """

    def __init__(self, folder: str, incarnation: int, make: Callable[[str], Inlet] = Inlet) -> None:
        data, express = _paths(folder, incarnation)
        self.data, self.express = make(data), make(express)
        self._poll = select.epoll()
        self._poll.register(self.express, select.EPOLLIN)
        self._with_data = False
        #: descriptors that could be read at the end of the last wait; None: that is not known
        self._ready: list[tuple[int, int]] | None = None
        # `select` waits to the microsecond, but does not know high numbers.
        self._exactly = self._poll.fileno() < 1000

    def watch(self, also: int) -> None:
        """`wait` ends when this can be read, too."""
        self._poll.register(also, select.EPOLLIN)

    def wait(self, seconds: float, data: bool) -> bool:
        """Until something comes in, or so long; False where nothing has. `data`: whether data counts."""
        if data != self._with_data:
            self._with_data = data
            if data:
                self._poll.register(self.data, select.EPOLLIN)
            else:
                self._poll.unregister(self.data)
        self._ready = None
        if seconds <= 0:
            return True  # it was not looked
        if seconds < SHORT and self._exactly:
            return bool(select.select([self._poll], [], [], seconds)[0])
        self._ready = self._poll.poll(seconds, WATCHED) or None
        return self._ready is not None

    def read(self, take: Take, data: bool) -> set[int]:
        """Give `take` the frames that have come, of `data` as well or express ones alone; return the descriptors that can be read, with those watched."""
        found, self._ready = self._ready, None
        ready = {number for number, _ in (self._poll.poll(0, WATCHED) if found is None else found)}
        if data and (not self._with_data or self.data.fileno() in ready):
            self.data.read(take)
        if self.express.fileno() in ready:
            self.express.read(take)
        return ready

    def mend(self) -> None:
        """Make files again that another program has removed, and say so."""
        if any([self.data.mend(), self.express.mend()]):
            print("its sockets were removed by another program: made again", file=sys.stderr)

    def close(self) -> None:
        """Close all, and remove the files."""
        self.data.close()
        self.express.close()
        self._poll.close()
