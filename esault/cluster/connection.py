"""A connection between hosts that carries messages: TLS over a socket that never blocks, each message behind its length.

It is one module of over 300 lines: calling, listening and carrying share one way to fail.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import ssl
import struct
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from esault.cluster.codec import MAX_MESSAGE, pack, unpack
from esault.cluster.key import ClusterKey, Peer
from esault.cluster.tls import Refused, Tls
from esault.errors import FrameError

__all__ = ["Connection", "Lost", "Strangers", "call", "crowding", "listen"]

_LENGTH = struct.Struct("<I")
_AT_ONCE = 256 << 10
#: reasons that one log line names
_MOST_REASONS = 8
#: milliseconds after which data that is not acknowledged breaks a connection
_USER_TIMEOUT = 3000
#: seconds until an idle connection of sub-units is looked at, between two looks, and looks in vain until it is given up: the driver tells
#: of hosts that are lost long before, and two that do not reach each other for a while must find their connection as it was
_PATIENT = (30, 10, 6)
#: where the other end always reads: milliseconds between two tries to send what was not acknowledged, at most. Python has no name for it. Not
#: for sub-units: the number of tries does not change, and a connection would be given up after fifteen seconds, not minutes
_TCP_RTO_MAX_MS, _LONGEST_RETRY = 44, 1000


class Lost(Exception):
    """The connection is no more; the text says why."""


class Strangers:
    """Those who were not let in: counted, and told in the log once a second at most, by reason."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.count = 0
        self._untold: Counter[str] = Counter()
        self._told_at = -1.0
        self._last = ""

    def note(self, peer: str, why: str) -> None:
        """One more."""
        self.count += 1
        self._untold[why if len(self._untold) < _MOST_REASONS else "other reasons"] += 1
        self._last = peer
        self.tell()

    def tell(self) -> None:
        """Log what has not been told, if the time has come."""
        now = time.monotonic()
        if self._untold and now - self._told_at >= 1.0:
            reasons = "; ".join(f"{why} ({n})" for why, n in self._untold.most_common())
            self._told_at = now
            total = sum(self._untold.values())
            self._untold.clear()
            logging.getLogger("esault").warning(
                "%s refused %d connection%s, the last from %s: %s",
                self._where,
                total,
                "" if total == 1 else "s",
                self._last,
                reasons,
            )


def crowding(peers: Sequence[str]) -> int:
    """Return the index of the stranger that makes room for another one; `peers` holds their addresses, the oldest first.

    It is the oldest of the address that most of them come from: an address that calls again and again only pushes out itself."""
    addresses = [peer.rpartition(":")[0] for peer in peers]
    ((most, _),) = Counter(addresses).most_common(1)
    return addresses.index(most)


class Connection:
    """One end. Nothing blocks but `wait` and `ask`."""

    def __init__(self, made: socket.socket, context: ssl.SSLContext, server: bool) -> None:
        made.setblocking(False)
        prepare(made, always_read=True)
        self._socket = made
        self._tls = Tls(context, server)
        self._out = bytearray()
        #: what the peer has sent of a message that is not whole
        self._in = bytearray()
        #: messages that came while another one was waited for
        self._kept: list[Any] = []
        self._unsent: list[bytes] = []
        self.peer = _peer(made)
        self.since = time.monotonic()
        self._buffer = memoryview(bytearray(_AT_ONCE))
        self._step()

    def fileno(self) -> int:
        """Of the socket."""
        return self._socket.fileno()

    @property
    def open(self) -> bool:
        """Return whether the peer has shown that it holds the key."""
        return self._tls.open

    def who(self, key: ClusterKey) -> Peer:
        """Return who holds the other end of an open connection, whose context is this key's."""
        return key.peer(self._tls.object)

    @property
    def waits(self) -> bool:
        """Return whether something could not be sent yet: call `flush` when the socket has room."""
        return bool(self._out)

    @property
    def backlog(self) -> int:
        """Bytes that the operating system has not taken."""
        return len(self._out)

    def send(self, message: Any) -> None:
        """Behind all that was sent before; what the operating system does not take now goes with `flush`. Raises Lost."""
        data = pack(message)
        data = _LENGTH.pack(len(data)) + data
        if not self._tls.open:
            self._unsent.append(data)
            return
        self._tls.write(data)
        self._out += self._tls.outgoing()
        self.flush()

    def flush(self) -> None:
        """Offer the operating system what waits. Raises Lost."""
        while self._out:
            try:
                sent = self._socket.send(self._out)
            except BlockingIOError:
                return
            except OSError as error:
                raise Lost(error.strerror or str(error)) from None
            del self._out[:sent]

    def receive(self) -> list[Any]:
        """The messages that have come. Raises Lost; Refused for a peer that does not hold the key or sends what is no message."""
        got, self._kept = self._kept, []
        while True:
            try:
                size = self._socket.recv_into(self._buffer)
            except BlockingIOError:
                break
            except OSError as error:
                raise Lost(error.strerror or str(error)) from None
            if not size:
                if not self._tls.open:
                    raise Refused("it hung up before it had shown its key")
                if got:
                    break  # the next call finds the end again
                raise Lost("it has hung up")
            self._tls.feed(self._buffer[:size])
            if not self._step():
                continue
            while size := self._tls.read_into(self._buffer):
                self._in += self._buffer[:size]
            self._cut(got)
            if got:
                break  # what is left in the socket tells again
        return got

    def _step(self) -> bool:
        """Go on with the handshake; whether it is over."""
        was = self._tls.open
        try:
            done = self._tls.advance()
        finally:
            self._out += self._tls.outgoing()
            if self._out:
                try:
                    self.flush()
                except Lost:
                    pass  # reading tells
        if done and not was:
            for data in self._unsent:
                self._tls.write(data)
            self._unsent.clear()
            self._out += self._tls.outgoing()
            self.flush()
        return done

    def _cut(self, got: list[Any]) -> None:
        at = 0
        while len(self._in) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._in, at)
            if length > MAX_MESSAGE:
                raise Refused(f"a message of {length} bytes")
            end = at + _LENGTH.size + length
            if len(self._in) < end:
                break
            try:
                got.append(unpack(bytes(self._in[at + _LENGTH.size : end])))
            except FrameError as error:
                raise Refused(str(error)) from None
            at = end
        del self._in[:at]

    def wait(self, seconds: float, *also: int) -> list[int]:
        """Until something comes in, or one of the descriptors `also` can be read, or so long; who can be read."""
        own = self.fileno()
        if self._kept:
            seconds = 0.0
        # Not `select`, which knows no descriptor above 1023: a program that calls `run` may have many files open.
        poll = select.poll()
        poll.register(own, select.POLLIN | (select.POLLOUT if self._out else 0))
        for each in also:
            poll.register(each, select.POLLIN)
        found = dict(poll.poll(1000 * max(0.0, seconds)))
        if found.get(own, 0) & select.POLLOUT:
            self.flush()
        ready = [each for each, events in found.items() if events & ~select.POLLOUT]
        return [own, *ready] if self._kept and own not in ready else ready

    def ask(self, message: Any, seconds: float, *answers: type) -> Any:
        """Send, and wait for a message of one of these types, or for any. Others are given by the next `receive`: a node tells
        its news whenever there are some. Raises Lost, Refused."""
        kept = self.receive()
        self.send(message)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.wait(left)
            got = self.receive()
            for at, answer in enumerate(got):
                if not answers or isinstance(answer, answers):
                    self._kept = [*kept, *got[:at], *got[at + 1 :]]
                    return answer
            kept += got
        raise Lost(f"no answer within {seconds:g} s")

    def close(self, within: float = 0.0) -> None:
        """Hang up; what waits is sent before, if it goes within so many seconds."""
        until = time.monotonic() + within
        try:
            while self._out and (left := until - time.monotonic()) > 0:
                poll = select.poll()
                poll.register(self, select.POLLOUT)
                poll.poll(1000 * left)
                self.flush()
        except (Lost, OSError, ValueError):
            pass
        self._socket.close()


def prepare(made: socket.socket, always_read: bool) -> None:
    """Options of every connection between hosts: what is sent goes at once, and a dead peer is found.

    `always_read`: the other end reads whatever happens, so that one which takes nothing for a while is dead. A sub-unit that is slow
    takes nothing either, for as long as it likes.
    """
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    idle, every, times = (1, 1, 3) if always_read else _PATIENT
    options = [("TCP_KEEPIDLE", idle), ("TCP_KEEPINTVL", every), ("TCP_KEEPCNT", times)]
    if always_read:
        options.append(("TCP_USER_TIMEOUT", _USER_TIMEOUT))
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # before 6.15
                made.setsockopt(socket.IPPROTO_TCP, _TCP_RTO_MAX_MS, _LONGEST_RETRY)
    for name, value in options:
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def call(host: str, port: int, context: ssl.SSLContext, seconds: float) -> Connection:
    """Return a connection to the process that listens there, its key checked. Raises Lost when none answers, Refused."""
    until = time.monotonic() + seconds
    try:
        made = socket.create_connection((host, port), seconds)
    except OSError as error:
        raise Lost(error.strerror or str(error)) from None
    connection = Connection(made, context, server=False)
    try:
        while not connection.open:
            left = until - time.monotonic()
            if left <= 0:
                raise Lost(f"no answer within {seconds:g} s")
            connection.wait(left)
            connection._kept = connection.receive()
    except BaseException:
        connection.close()
        raise
    return connection


def listen(host: str, port: int) -> socket.socket:
    """A listening socket that does not block. Raises OSError."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


def _peer(made: socket.socket) -> str:
    try:
        name = made.getpeername()
    except OSError:
        return "a caller that has hung up"
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name)
