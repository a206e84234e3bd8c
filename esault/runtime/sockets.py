"""Channels on pyzmq: one PUSH per link, two bound PULLs per process (PROTOCOL section 1)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import zmq

__all__ = ["Inlets", "ZmqWire"]

#: frames that each side of a data link buffers
HIGH_WATER = 8
#: milliseconds that a link has to deliver its last frames
FINISH_WITHIN = 5_000


class _Link:
    """A PUSH socket. `refused` collects those that did not take a frame, to wait until they can."""

    __slots__ = ("_refused", "_send", "_socket")

    def __init__(self, socket: zmq.Socket[bytes], refused: set[zmq.Socket[bytes]]) -> None:
        self._socket = socket
        self._send = socket.send
        self._refused = refused

    def send(self, frame: bytes) -> bool:
        try:
            self._send(frame, zmq.NOBLOCK)
        except zmq.Again:
            self._refused.add(self._socket)
            return False
        return True

    def finish(self) -> None:
        self._refused.discard(self._socket)
        self._socket.close(linger=FINISH_WITHIN)

    def close(self) -> None:
        self._refused.discard(self._socket)
        self._socket.close(linger=0)


class ZmqWire:
    """Makes links of one process."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self._context = context
        #: sockets that refused a frame since the set was last cleared
        self.refused: set[zmq.Socket[bytes]] = set()

    def link(self, endpoint: str) -> _Link:
        """A link to `endpoint`, which need not exist (any more)."""
        socket = self._context.socket(zmq.PUSH)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SNDHWM, HIGH_WATER)
        socket.connect(endpoint)
        return _Link(socket, self.refused)


class Inlets:
    """The receiving sockets of one process: data, and what must never wait behind data.

    Endpoints are files in the run's own folder, which only this user may enter, named by incarnation: no other
    life of a sub-unit ever uses them.

    A socket that is at its high-water mark stops reading its connections, and when a sender closes one meanwhile, what
    the operating system holds of it is lost (seen with libzmq 4.3: 14 of 32 frames, whatever the sender's LINGER).
    So a way to a data socket is closed only after its last frame has been read. The express socket has no mark: all is
    read as it comes, and senders may go when they have sent. What may be many bytes, state, waits for its receipts.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], folder: str, incarnation: int) -> None:
        self.endpoint = f"ipc://{os.path.join(folder, f'{incarnation}.data')}"
        self.express_endpoint = f"ipc://{os.path.join(folder, f'{incarnation}.express')}"
        self.data = self._bind(context, self.endpoint, HIGH_WATER)
        self.express = self._bind(context, self.express_endpoint, 0)

    @staticmethod
    def _bind(context: zmq.Context[zmq.Socket[bytes]], endpoint: str, high_water: int) -> zmq.Socket[bytes]:
        socket = context.socket(zmq.PULL)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVHWM, high_water)
        # A frame larger than any that we send is a stranger's: the connection is closed, not served.
        socket.setsockopt(zmq.MAXMSGSIZE, 300 << 20)
        socket.bind(endpoint)
        return socket

    def read(self, socket: zmq.Socket[bytes], take: Callable[[bytes], None], may: Callable[[], bool]) -> bool:
        """Read a socket until it is empty, or `may` says no; whether anything came."""
        came = False
        while may():
            try:
                frame = socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                break
            came = True
            take(frame)
        return came

    def close(self) -> None:
        """Close the sockets and remove their files."""
        for socket, endpoint in ((self.data, self.endpoint), (self.express, self.express_endpoint)):
            socket.close(linger=0)
            with contextlib.suppress(OSError):
                os.unlink(endpoint.removeprefix("ipc://"))
