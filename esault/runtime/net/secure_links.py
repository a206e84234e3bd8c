"""Links between processes of different hosts: TLS over TCP, the same frames behind their length.

An endpoint in a run on several hosts says both ways to a socket: `HOST unix:FILE tls:ADDRESS:PORT/NAME`. Who is on that host
takes the first, all others the second. The name (run, incarnation, which of its sockets) is said right after the handshake: a
port may be used again, a name never is.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import select
import socket
import ssl
import time
from typing import Final, NamedTuple

from esault.cluster.address import split
from esault.cluster.connection import prepare
from esault.cluster.tls import Refused, Tls
from esault.flow.channel.wire import Link
from esault.runtime.net.links import HEADER, PREFACE, UnixWire
from esault.runtime.net.stream_link import StreamLink

__all__ = ["Endpoint", "HostWire", "SecureLink"]

#: seconds after which a connection that was refused is tried again
AGAIN: Final = 0.2


class Endpoint(NamedTuple):
    """Both ways to a socket."""

    host: str
    #: an endpoint of `UnixWire`
    local: str
    #: ADDRESS:PORT
    address: str
    name: str

    def __str__(self) -> str:
        return f"{self.host} {self.local} tls:{self.address}/{self.name}"

    @classmethod
    def read(cls, text: str) -> Endpoint:
        """Return the endpoint that `str` gave."""
        near, _, far = text.rpartition(" tls:")
        host, _, local = near.partition(" ")
        address, _, name = far.partition("/")
        return cls(host, local, address, name)


class SecureLink(StreamLink):
    """One connection to another host, what waits being encrypted. What was lost is found by the frames' numbers."""

    __slots__ = ("_again_at", "_context", "_target", "_tls", "sent")

    def __init__(self, target: Endpoint, context: ssl.SSLContext, wire: HostWire) -> None:
        super().__init__(wire)
        self._target = target
        self._context = context
        self._tls: Tls | None = None
        self._again_at = 0.0
        #: bytes that were encrypted
        self.sent = 0
        self._connect()

    def _connect(self) -> None:
        host, port = split(self._target.address)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setblocking(False)
        prepare(made, always_read=False)
        code = made.connect_ex((host, port))
        if code not in (0, errno.EINPROGRESS):
            made.close()
            self._again_at = time.monotonic() + AGAIN
            return
        self._socket, self._tls = made, Tls(self._context, server=False)
        self._wire.wait_for(self, select.EPOLLOUT)

    def send(self, frame: bytes) -> bool:
        """Return whether the frame was taken; False: not now, offer it again later."""
        if self._rest is not None or self._socket is None or self._tls is None or not self._tls.open:
            if self._socket is None and not self._broken and time.monotonic() >= self._again_at:
                self._connect()
            if not self.retry():
                return False
        tls = self._tls
        assert tls is not None
        tls.write(HEADER.pack(len(frame)) + frame if len(frame) < 65536 else HEADER.pack(len(frame)))
        if len(frame) >= 65536:
            tls.write(frame)
        self._hand_over(tls.outgoing())
        return self._socket is not None

    def _hand_over(self, data: bytes) -> None:
        self.sent += len(data)
        if self._rest is not None:
            data = bytes(self._rest) + data
        self._rest = memoryview(data) if data else None
        self._offer()

    def retry(self) -> bool:
        """Go on with what is under way; True when a frame would be taken."""
        if self._broken or self._tls is None or self._socket is None:
            return False
        self._wire.forget(self)  # what it waits for next may be something else
        if not self._tls.open and not self._greet(self._tls, self._socket):
            return False
        return self._offer()

    def _greet(self, tls: Tls, connected: socket.socket) -> bool:
        """Go on with connecting and the handshake; whether that is over."""
        code = connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._drop()  # no process listens there (yet, or any more): the next frame tries again
            return False
        try:
            with contextlib.suppress(BlockingIOError):
                while data := connected.recv(65536):
                    tls.feed(data)
                    tls.advance()
                self._drop()
                return False
            tls.advance()
        except OSError as error:
            if error.errno == errno.ENOTCONN:
                self._wire.wait_for(self, select.EPOLLOUT)
            else:
                self._drop()
            return False
        except Refused as error:
            logging.getLogger("esault").warning(
                "no link to %s on %s: %s", self._target.name, self._target.address, error
            )
            super()._break()
            return False
        if tls.open:
            name = self._target.name.encode()
            tls.write(PREFACE + HEADER.pack(len(name)) + name)
        self._hand_over(tls.outgoing())
        if not tls.open and self._socket is not None and self._rest is None:
            self._wire.wait_for(self, select.EPOLLIN)
        return tls.open and self._socket is not None

    def _break(self) -> None:
        """Note that the connection has ended, be it that nothing went over it for long: without another one acks would never get there.

        What was under way is found missing by the numbers of later frames.
        """
        self._drop()

    def _drop(self) -> None:
        """Have the next frame connect anew."""
        if self._socket is not None:
            self._wire.forget(self)
            self._socket.close()
        self._socket = self._tls = self._rest = None
        self._again_at = time.monotonic() + AGAIN


class HostWire(UnixWire):
    """Makes links of one process in a run on several hosts."""

    def __init__(self, host: str, context: ssl.SSLContext) -> None:
        super().__init__()
        self._host = host
        self._context = context
        self._secure: dict[SecureLink, str] = {}
        self._sent: dict[str, int] = {}

    def link(self, endpoint: str) -> Link:
        """A link to `endpoint`, which need not exist (any more)."""
        if endpoint.startswith("unix:"):  # of this host's prober
            return super().link(endpoint)
        target = Endpoint.read(endpoint)
        if target.host == self._host:
            return super().link(target.local)
        made = SecureLink(target, self._context, self)
        self._links.add(made)
        self._secure[made] = target.host
        return made

    def gone(self, link: StreamLink) -> None:
        """It was closed."""
        super().gone(link)
        if isinstance(link, SecureLink) and (host := self._secure.pop(link, None)) is not None:
            self._sent[host] = self._sent.get(host, 0) + link.sent

    def traffic(self) -> dict[str, int]:
        """Bytes that went to each other host so far, encrypted."""
        total = dict(self._sent)
        for link, host in self._secure.items():
            total[host] = total.get(host, 0) + link.sent
        return total
