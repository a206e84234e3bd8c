"""Links between processes of one host: a stream socket of Unix each, frames behind their length (docs/explanation/runtime.md).

The sending end. What the operating system does not take at once waits here, a part of one frame at most, and goes on as
soon as the receiver has read. Why not a library: docs/explanation/runtime.md has the measurements.
"""

from __future__ import annotations

import select
import socket
import struct
from typing import Final

from esault.flow.channel.wire import Link
from esault.runtime.net.stream_link import StreamLink

__all__ = ["HEADER", "LONGEST_FRAME", "PREFACE", "UnixLink", "UnixWire", "path_of"]

#: first on each connection: who does not say it is no sub-unit of this version
PREFACE: Final = b"esault 1"
#: before each frame: its length in bytes
HEADER: Final = struct.Struct("<I")
#: bytes; a frame larger than any that we send is a stranger's
LONGEST_FRAME: Final = 300 << 20
#: bytes that the operating system holds for a link, about; it doubles this, and counts what it needs itself
SEND_BUFFER: Final = 128 << 10
#: ... at most, where frames are larger: one that does not fit wakes both processes up once more for each part of it
LARGEST_BUFFER: Final = 1 << 20

_SCHEME = "unix:"


def path_of(endpoint: str) -> str:
    """The file of an endpoint `unix:FILE`."""
    return endpoint.removeprefix(_SCHEME)


class UnixLink(StreamLink):
    """One connection within a host."""

    __slots__ = ("_buffer", "_endpoint")

    def __init__(self, endpoint: str, wire: UnixWire) -> None:
        super().__init__(wire)
        self._endpoint = endpoint
        self._buffer = SEND_BUFFER
        self._connect()

    def _connect(self) -> bool:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._buffer)
        try:
            made.connect(path_of(self._endpoint))
            made.send(PREFACE)
        except OSError:  # not there, not any more, or with too many callers at once: the next frame tries again
            made.close()
            return False
        self._socket = made
        return True

    def send(self, frame: bytes) -> bool:
        """Return whether the frame was taken; False: not now, offer it again later."""
        if self._rest is not None and not self.retry():
            return False
        if self._socket is None and (self._broken or not self._connect()):
            return False
        assert self._socket is not None
        size = len(frame)
        try:
            sent = self._socket.sendmsg((HEADER.pack(size), frame))
        except BlockingIOError:
            self._wire.wait_for(self)
            return False
        except OSError:
            self._break()
            return False
        if sent != HEADER.size + size:
            # The header went in whole, as a rule: a frame may be large, and is not copied for its rest.
            behind = sent - HEADER.size
            self._rest = memoryview(frame)[behind:] if behind >= 0 else memoryview(HEADER.pack(size) + frame)[sent:]
            if size > self._buffer < LARGEST_BUFFER:
                self._buffer = min(size, LARGEST_BUFFER)
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._buffer)
            self._wire.wait_for(self)
        return True


class UnixWire:
    """Makes links of one process, and knows which of them wait for their receivers."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._waiting: dict[int, StreamLink] = {}
        self._links: set[StreamLink] = set()

    def link(self, endpoint: str) -> Link:
        """A link to `endpoint`, which need not exist (any more)."""
        made = UnixLink(endpoint, self)
        self._links.add(made)
        return made

    def fileno(self) -> int:
        """Can be read when a link that waits has room again."""
        return self._poll.fileno()

    def wait_for(self, link: StreamLink, until: int = select.EPOLLOUT) -> None:
        """`fileno` should tell when this link has room, or whatever else it waits for."""
        number = link.fileno()
        if number not in self._waiting:
            self._waiting[number] = link
            self._poll.register(number, until)

    def forget(self, link: StreamLink) -> None:
        """It waits no more."""
        number = link.fileno()
        if self._waiting.get(number) is link:
            del self._waiting[number]
            self._poll.unregister(number)

    def gone(self, link: StreamLink) -> None:
        """It was closed."""
        self._links.discard(link)

    def traffic(self) -> dict[str, int]:
        """Bytes that went to each other host so far: there is none."""
        return {}

    def retry(self) -> None:
        """Send what waits, where there is room."""
        if self._waiting:
            for number, _ in self._poll.poll(0):
                link = self._waiting[number]
                self.forget(link)
                link.retry()

    def close(self) -> None:
        """The process needs no links any more."""
        for link in list(self._links):
            link.close()
        self._poll.close()
