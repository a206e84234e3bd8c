"""One TCP connection that lines come from."""

from __future__ import annotations

import socket

from esault.errors import SourceError
from esault.sources.line_cutter import Block, LineCutter
from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally

__all__ = ["LineConnection", "name_of"]

#: bytes received at once
_CHUNK = 64 * 1024


class LineConnection:
    """A connected socket, made non-blocking, and the line that is still to be completed."""

    def __init__(self, sock: socket.socket, form: LineFormat, tally: LineTally, now: float) -> None:
        sock.setblocking(False)
        # a peer that vanished without a word is found out in the end
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.sock = sock
        #: "host:port" of the other side
        self.peer = name_of(sock.getpeername())
        self.alive = True
        #: when it was made, and whether a line has come by it
        self.since, self.has_brought = now, False
        self._cutter = LineCutter(form, tally, self.peer)

    def receive(self) -> list[str]:
        """The lines that came; afterwards `alive` says whether more can come."""
        try:
            data = self.sock.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            # reset: a line that was begun is not one that was sent
            self.alive = False
            return []
        if not data:
            self.alive = False
            return self._lines(self._cutter.finish())
        return self._lines(self._cutter.feed(data))

    @property
    def pending(self) -> int:
        """Return the number of bytes of a line that is not complete."""
        return self._cutter.pending

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()

    def _lines(self, block: Block) -> list[str]:
        if block.bad:
            raise SourceError(f"connection from {self.peer}: {block.bad.reason}")
        self.has_brought = self.has_brought or bool(block.lines)
        return block.lines


def name_of(address: tuple[object, ...]) -> str:
    """An address of the socket module as "host:port"."""
    host, port = address[0], address[1]
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
