"""One end of a TLS connection without its socket: bytes in, bytes out. Nothing here blocks."""

from __future__ import annotations

import ssl
from typing import Any

__all__ = ["Refused", "Tls"]


class Refused(Exception):
    """The peer is none of ours, or what it sends is none of what we speak; the text is for people."""


class Tls:
    """`feed` takes what came from the socket; `outgoing` is what must go there. Raises Refused."""

    __slots__ = ("_incoming", "_outgoing", "object", "open")

    def __init__(self, context: ssl.SSLContext, server: bool) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.object = context.wrap_bio(self._incoming, self._outgoing, server_side=server)
        #: the peer has shown that it holds the key
        self.open = False

    def feed(self, data: bytes | memoryview) -> None:
        """Bytes from the socket."""
        self._incoming.write(data)

    def advance(self) -> bool:
        """Go on with the handshake; whether it is over. What it says stands in `outgoing`, also when it fails."""
        if not self.open:
            try:
                self.object.do_handshake()
            except ssl.SSLWantReadError:
                return False
            except ssl.SSLError as error:
                raise Refused(_reason(error)) from None
            self.open = True
        return True

    def write(self, data: bytes | memoryview) -> None:
        """Encrypt; `outgoing` then holds it."""
        view = memoryview(data)
        while view:
            view = view[self.object.write(view) :]

    def read_into(self, view: memoryview) -> int:
        """Decrypt what there is into `view`; how many bytes, 0: no more at the moment."""
        try:
            size: Any = self.object.read(len(view), view)
        except ssl.SSLWantReadError:
            return 0
        except ssl.SSLError as error:  # also its end in order, behind which nothing comes
            raise Refused(_reason(error)) from None
        return int(size)

    def outgoing(self) -> bytes:
        """Bytes for the socket."""
        return self._outgoing.read()


def _reason(error: ssl.SSLError) -> str:
    what = (error.reason or str(error)).lower().replace("_", " ")
    if isinstance(error, ssl.SSLZeroReturnError):
        return "it has hung up"
    if "certificate" in what or "unknown ca" in what or "signature" in what or "decrypt error" in what:
        return f"another key, so it belongs to another cluster ({what})"
    if "wrong version" in what or "http request" in what or "unsupported protocol" in what or "unexpected" in what:
        return f"it does not speak TLS 1.3, so it is no node of eSault's ({what})"
    return what
