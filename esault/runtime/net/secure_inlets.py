"""Inlets of a process for other hosts: a listening TCP socket beside each one of Unix, TLS with the cluster's key."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
from collections.abc import Callable
from typing import Final

from esault.cluster.address import join
from esault.cluster.connection import Strangers, crowding, listen, prepare
from esault.cluster.tls import Refused, Tls
from esault.runtime.net.inlets import AT_ONCE, Connection, Inlet, Take
from esault.runtime.net.links import HEADER, PREFACE
from esault.runtime.net.secure_links import Endpoint

__all__ = ["HostInlet", "host_inlets"]

#: connections to one socket that have not shown a key
MOST_STRANGERS: Final = 64
#: connections that are accepted between two looks at the others
ACCEPTED_AT_ONCE: Final = 4
_LONGEST_NAME: Final = 256


class _SecureConnection(Connection):
    """One sender of another host."""

    __slots__ = ("peer", "tls")

    def __init__(self, made: socket.socket, context: ssl.SSLContext, peer: str) -> None:
        super().__init__(made)
        self.tls = Tls(context, server=True)
        self.peer = peer


class HostInlet(Inlet):
    """An inlet with a second listening socket. What does not show the key, and then this socket's name, is hung up on."""

    def __init__(self, path: str, host: str, address: str, run: str, context: ssl.SSLContext) -> None:
        super().__init__(path)
        self._name = f"{run}/{os.path.basename(path)}".encode()
        self._context = context
        self._far = listen(address, 0)
        self._poll.register(self._far, select.EPOLLIN)
        there = join(address, self._far.getsockname()[1])
        self.endpoint = str(Endpoint(host, self.endpoint, there, self._name.decode()))
        self.strangers = Strangers(self._name.decode())
        self._scrap = memoryview(bytearray(AT_ONCE))

    def read(self, take: Take) -> bool:
        """Give `take` the frames that have come, some of each sender; whether there were any."""
        came = False
        near, far = self._listener.fileno(), self._far.fileno()
        for number, _ in self._poll.poll(0):
            if number == near:
                came = self._accept(take) or came
            elif number == far:
                self._accept_far()
            else:
                connection = self._connections.get(number)
                if connection is None:
                    continue  # it was turned away a moment ago
                if isinstance(connection, _SecureConnection):
                    came = self._receive_secure(connection, take) or came
                else:
                    came = self._receive(connection, take) or came
        return came

    def _accept_far(self) -> None:
        # A few at a time: a peer that calls without end must not keep the data loop from its frames.
        with contextlib.suppress(BlockingIOError):
            for _ in range(ACCEPTED_AT_ONCE):
                try:
                    made, name = self._far.accept()
                except ConnectionError:
                    continue
                strangers = [
                    c for c in self._connections.values() if isinstance(c, _SecureConnection) and not c.greeted
                ]
                if len(strangers) >= MOST_STRANGERS:
                    self._turn_away(
                        strangers[crowding([c.peer for c in strangers])], "too many connections that say nothing"
                    )
                made.setblocking(False)
                prepare(made, always_read=False)
                self._connections[made.fileno()] = _SecureConnection(made, self._context, f"{name[0]}:{name[1]}")
                self._poll.register(made, select.EPOLLIN)

    def _receive_secure(self, connection: _SecureConnection, take: Take) -> bool:
        try:
            size = connection.socket.recv_into(self._scrap)
        except BlockingIOError:
            return False
        except OSError:
            size = 0
        if not size:
            if connection.greeted:
                self._hang_up(connection)
            else:
                self._turn_away(connection, "it hung up before it had shown its key")
            return False
        tls, came = connection.tls, False
        tls.feed(self._scrap[:size])
        try:
            if not tls.open and not self._shake_hands(connection):
                return False
            while got := tls.read_into(self._room(connection)):
                came = self._got(connection, got, take) or came
                if connection.socket.fileno() < 0:
                    break  # hung up on, for what it sent
        except Refused as error:
            if connection.greeted:
                self._hang_up(connection)
            else:
                self._turn_away(connection, str(error))
        return came

    def _shake_hands(self, connection: _SecureConnection) -> bool:
        try:
            return connection.tls.advance()
        finally:
            data = connection.tls.outgoing()
            if data:
                # a few hundred bytes into an empty buffer: what does not go at once is a stranger's who reads nothing
                with contextlib.suppress(OSError):
                    connection.socket.send(data)

    def _greeting(self, connection: Connection, said: memoryview) -> int:
        if not isinstance(connection, _SecureConnection):
            return super()._greeting(connection, said)
        start = len(PREFACE) + HEADER.size
        if len(said) >= start:
            (length,) = HEADER.unpack_from(said, len(PREFACE))
            if bytes(said[: len(PREFACE)]) != PREFACE or length > _LONGEST_NAME:
                self._turn_away(connection, "it has the key, but is no sub-unit of this version")
                return 0
            if len(said) >= start + length:
                if bytes(said[start : start + length]) != self._name:
                    # another life of this port: the process that was meant is gone
                    self._hang_up(connection)
                    return 0
                return start + int(length)
        connection.head = bytes(said)
        return 0

    def _turn_away(self, connection: _SecureConnection, why: str) -> None:
        self.strangers.note(connection.peer, why)
        self._hang_up(connection)

    def close(self) -> None:
        """Close all, and remove the file."""
        self._far.close()
        super().close()


def host_inlets(host: str, address: str, run: str, context: ssl.SSLContext) -> Callable[[str], Inlet]:
    """Makes the inlets of a process, by the path of each."""
    return lambda path: HostInlet(path, host, address, run, context)
