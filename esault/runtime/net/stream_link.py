"""One connection of a stream socket, whatever its family: what the operating system does not take at once waits here, a part of a frame."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from esault.runtime.net.links import UnixWire

__all__ = ["FINISH_WITHIN", "StreamLink"]

#: seconds that a link has to deliver the rest of its last frame
FINISH_WITHIN: Final = 5.0


class StreamLink:
    """The common part of links. Once broken it takes nothing more, as the receiver's death is dealt with elsewhere."""

    __slots__ = ("_broken", "_rest", "_socket", "_wire")

    def __init__(self, wire: UnixWire) -> None:
        self._wire = wire
        self._socket: socket.socket | None = None
        #: of what was taken: what the operating system has not
        self._rest: memoryview | None = None
        self._broken = False

    def send(self, frame: bytes) -> bool:
        """Return whether the frame was taken; False: not now, offer it again later."""
        raise NotImplementedError

    def retry(self) -> bool:
        """Go on, as far as that is possible now; True when a frame would be taken."""
        return self._offer()

    def _offer(self) -> bool:
        """Offer what is left again; True when nothing is."""
        while self._rest is not None:
            assert self._socket is not None
            try:
                sent = self._socket.send(self._rest)
            except BlockingIOError:
                self._wire.wait_for(self)
                return False
            except OSError:
                self._break()
                return False
            self._rest = self._rest[sent:] if sent < len(self._rest) else None
        return not self._broken

    def fileno(self) -> int:
        """Of the socket; -1 where there is none."""
        return -1 if self._socket is None else self._socket.fileno()

    def _break(self) -> None:
        self._rest = None
        self.close()

    def finish(self) -> None:
        """Send nothing more; what was taken is still delivered."""
        if self._rest is not None and self._socket is not None:
            self._wire.forget(self)
            self._socket.settimeout(FINISH_WITHIN)
            with contextlib.suppress(OSError):
                self._socket.sendall(self._rest)
        self.close()

    def close(self) -> None:
        """Give it up. What the operating system has is still delivered."""
        self._broken = True
        if self._socket is not None:
            self._wire.forget(self)
            self._socket.close()
            self._socket = None
        self._wire.gone(self)
