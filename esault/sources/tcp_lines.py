"""Lines that come over TCP.

It is one module of over 300 lines: listening, connecting again and stopping share one table of connections.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
from collections import deque
from typing import Any, ClassVar

from esault.errors import SourceError, TopologyError
from esault.sources.line_connection import LineConnection, name_of
from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally
from esault.topology.context import Context
from esault.topology.spout import EndOfStream, Spout

__all__ = ["TcpLines"]

#: seconds the first connection may take, and each further attempt
_PATIENCE = 5.0
#: seconds until the next attempt to connect again: at first, and at most
_SHORTEST_BACKOFF, _LONGEST_BACKOFF = 0.1, 5.0
#: characters of lines that wait to be read; beyond, bytes are left to TCP, which slows down who sends them
_BUFFER = 1024 * 1024
#: at a stop: seconds in which nothing more has to come, and characters that are still taken
_LAST_WAIT, _LAST_BYTES = 0.05, 64 * 1024 * 1024
#: connections at once; further ones wait in the listening socket's queue
_MOST_CONNECTIONS = 256
#: seconds after which a connection that has brought no line goes if others wait, and between two looks for such ones
_SILENT, _LOOK_EVERY = 5.0, 1.0
#: the system has no room for one more connection just now
_NO_ROOM = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class TcpLines(Spout[str, str]):
    """Lines that a server sends, or with `listen=True` those that clients send here. Key: the peer's "host:port".

    As a client it connects when the topology starts, which fails if no server listens; when the connection is lost
    later, it connects again, first after 0.1 s and then less and less often up to every 5 s. With `reconnect=False`
    the end of the connection is the end of the stream. Lines sent while it was not connected are lost: TCP keeps
    nothing, so there is no position. With `listen=True` any number of clients may come and go; it never ends.
    256 are served at a time: where more wait, those that have brought no line within 5 s go for them.

    Strangers send what they like: bytes that are no text come out as U+FFFD and lines longer than `max_line` are
    left out, unless `errors` and `on_long_line` say otherwise (see `TextFiles`). Nothing authenticates or encrypts.
    """

    delivery_guarantee: ClassVar[str] = "with checkpoints what was read is kept on disk; without, it is lost"

    takes_ahead = True

    def __init__(
        self,
        host: str,
        port: int,
        *,
        listen: bool = False,
        reconnect: bool = True,
        encoding: str = "utf-8",
        errors: str = "replace",
        max_line: int = 1024 * 1024,
        on_long_line: str = "skip",
    ) -> None:
        if not isinstance(host, str) or not host:
            raise TopologyError(f'TcpLines: host={host!r}: write a name or an address such as "127.0.0.1"')
        if not isinstance(port, int) or isinstance(port, bool) or not (0 if listen else 1) <= port <= 65535:
            raise TopologyError(f"TcpLines: port={port!r}: write a number from 1 to 65535")
        try:
            self._form = LineFormat(encoding, errors, max_line, on_long_line)
        except TopologyError as error:
            raise TopologyError(f"TcpLines: {error}") from None
        self.host, self.port, self.listen, self.reconnect = host, port, listen, reconnect
        self._tally = LineTally()
        self._selector: selectors.BaseSelector | None = None
        self._listener: socket.socket | None = None
        self._connections: dict[int, LineConnection] = {}
        self._waiting: deque[tuple[str, deque[str]]] = deque()
        self._buffered = 0
        # a client that was cut off: where to, the attempt under way and since when, when the next one is due
        self._addresses: list[Any] = []
        self._attempt: socket.socket | None = None
        self._attempted = 0.0
        self._next_attempt: float | None = None
        self._backoff = _SHORTEST_BACKOFF
        self._ended = False
        #: when it is looked again whether there is room for who waits; None: there is
        self._full_until: float | None = None
        #: it was said that silent ones are hung up on
        self._said_silent = False
        #: the run stops: nothing more is received
        self._halted = False

    @property
    def address(self) -> tuple[str, int]:
        """Return the address at which it listens, once open; with port 0 the system has chosen the port."""
        if self._listener is None:
            return self.host, self.port
        return self._listener.getsockname()[:2]  # type: ignore[no-any-return]

    def check(self) -> None:
        """Raises SourceError when the host is unknown or the port to listen on cannot be had.

        A client does not connect yet: a server that serves one connection would take this one for it.
        """
        if self.listen:
            self._bind().close()
        else:
            self._resolve()

    def open(self, context: Context) -> None:
        """Listen, or connect; SourceError if that fails."""
        self.context = context
        self._tally.logger = context.logger
        self._selector = selectors.DefaultSelector()
        if self.listen:
            self._listener = self._bind()
            self._listener.listen(128)
            self._listener.setblocking(False)
            self._selector.register(self._listener, selectors.EVENT_READ)
            return
        self._addresses = self._resolve()
        try:
            sock = socket.create_connection((self.host, self.port), timeout=_PATIENCE)
        except OSError as error:
            raise SourceError(
                f"{self._where}: cannot connect ({error.strerror or error}); start what sends the lines first, "
                "check host and port, or let it connect here: listen=True"
            ) from error
        if not self._add(sock):
            raise SourceError(f"{self._where}: the connection was closed at once; see what the server says")

    def read(self, limit: int) -> list[tuple[str, str]]:
        """Up to `limit` lines that have come; never waits for more."""
        selector = self._selecting
        if not self._halted and self._buffered < _BUFFER and sum(len(lines) for _, lines in self._waiting) < limit:
            self._connect_again()
            self._look_for_room()
            self._receive(selector)
        rows: list[tuple[str, str]] = []
        while self._waiting and len(rows) < limit:
            peer, lines = self._waiting[0]
            while lines and len(rows) < limit:
                line = lines.popleft()
                self._buffered -= len(line)
                rows.append((peer, line))
            if not lines:
                self._waiting.popleft()
        if not rows and self._ended and not self._waiting:
            raise EndOfStream
        return rows

    def halt(self) -> None:
        """Receive what is under way from peers, which take it to have come, and close all connections."""
        while self._listener is not None:
            try:
                sock, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                break
            self._add(sock)
        if self._listener is not None:
            with contextlib.suppress(KeyError):  # it is not listened on where there are as many as may be
                self._selecting.unregister(self._listener)
            self._listener.close()
            self._listener = None
        self.reconnect, self._next_attempt = False, None
        before, unfinished, more = self._buffered, 0, True
        while more and self._buffered - before < _LAST_BYTES:
            more = False
            for key, _ in self._selecting.select(_LAST_WAIT):
                connection = self._connections.get(key.fd)
                if connection is not None:
                    more = True
                    self._receive_from(connection)
                    unfinished += 0 if connection.alive else connection.pending
        unfinished += sum(connection.pending for connection in self._connections.values())
        if self._connections and more:
            self.context.logger.warning(
                "%s: a peer sends on while the run stops; what comes now is left out", self._where
            )
        if unfinished:
            self.context.logger.warning(
                "%s: %d bytes of lines that peers had not finished are left out", self._where, unfinished
            )
        self._halted = self._ended = True
        self._close_sockets()

    def counters(self) -> dict[str, int]:
        """Return the number of lines left out or cut short so far, by reason."""
        return dict(self._tally.counts)

    def close(self) -> None:
        """Close all sockets."""
        self._close_sockets()

    def _close_sockets(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        for sock in (self._listener, self._attempt):
            if sock is not None:
                sock.close()
        self._listener = self._attempt = None
        if self._selector is not None:
            self._selector.close()

    @property
    def _where(self) -> str:
        return name_of((self.host, self.port))

    def _resolve(self) -> list[Any]:
        try:
            return socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise SourceError(
                f"{self._where}: the host is not known ({error.strerror or error}); check its name"
            ) from error

    def _bind(self) -> socket.socket:
        family, kind, protocol, _, address = self._resolve()[0]
        sock = socket.socket(family, kind, protocol)
        try:
            # else the port stays taken for a minute after a run
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.listen(1)  # two may bind with SO_REUSEADDR, but only one may listen
        except OSError as error:
            sock.close()
            remedy = {
                errno.EADDRINUSE: "another process listens there: end it, or choose another port",
                errno.EACCES: "ports below 1024 are for the system's administrator: choose a higher one",
                errno.EADDRNOTAVAIL: 'this machine has no such address: write one it has, or "0.0.0.0" for all',
            }.get(error.errno or 0, "choose another host or port")
            raise SourceError(f"{self._where}: cannot listen ({error.strerror or error}); {remedy}") from error
        return sock

    def _receive(self, selector: selectors.BaseSelector) -> None:
        for key, _ in selector.select(0):
            if key.fileobj is self._listener:
                self._accept(self._listener)
            elif key.fileobj is self._attempt:
                self._complete(self._attempt)
            elif self._buffered < _BUFFER:
                self._receive_from(self._connections[key.fd])

    def _receive_from(self, connection: LineConnection) -> None:
        lines = connection.receive()
        if lines:
            self._backoff = _SHORTEST_BACKOFF
            self._buffered += sum(map(len, lines))
            self._waiting.append((connection.peer, deque(lines)))
        if not connection.alive:
            self._remove(connection)

    def _accept(self, listener: socket.socket) -> None:
        while self._has_room():
            try:
                sock, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                self.context.logger.warning(
                    "%s: no connection can be taken for now: %s", self._where, error.strerror or error
                )
                break
            self._add(sock)
        # else the selector would report it again and again
        self._selecting.unregister(listener)
        self._full_until = self.context.now() + _LOOK_EVERY

    def _has_room(self) -> bool:
        """Return whether one more can be let in. One that takes a place and brings nothing goes for it, the oldest first."""
        if len(self._connections) < _MOST_CONNECTIONS:
            return True
        latest = self.context.now() - _SILENT
        silent = next((c for c in self._connections.values() if not c.has_brought and c.since <= latest), None)
        if silent is None:
            return False
        if not self._said_silent:
            self._said_silent = True
            self.context.logger.warning(
                "%s: all %d places are taken and others wait: connections that bring no line go after %g s, the first is %s",
                self._where,
                _MOST_CONNECTIONS,
                _SILENT,
                silent.peer,
            )
        self._remove(silent)
        return True

    def _look_for_room(self) -> None:
        now = self.context.now()
        # a clock that was set back must not make them wait for it
        if self._full_until is None or 0 < self._full_until - now <= _LOOK_EVERY or self._listener is None:
            return
        self._full_until = None
        self._selecting.register(self._listener, selectors.EVENT_READ)

    def _add(self, sock: socket.socket) -> bool:
        try:
            connection = LineConnection(sock, self._form, self._tally, self.context.now())
        except OSError:  # it has gone again
            sock.close()
            return False
        self._connections[sock.fileno()] = connection
        self._selecting.register(sock, selectors.EVENT_READ)
        return True

    def _remove(self, connection: LineConnection) -> None:
        self._selecting.unregister(connection.sock)
        del self._connections[connection.sock.fileno()]
        connection.close()
        if self._listener is not None:
            if self._full_until is not None:
                self._full_until = self.context.now()  # at the next read
        elif self.reconnect:
            self.context.logger.warning("%s: the connection is gone; connecting again", self._where)
            self._try_later()
        else:
            self._ended = True

    @property
    def _selecting(self) -> selectors.BaseSelector:
        if self._selector is None:
            raise SourceError("TcpLines: open(context) comes before read")
        return self._selector

    def _connect_again(self) -> None:
        now = self.context.now()
        if self._attempt is not None and now - self._attempted > _PATIENCE:
            self._give_up(self._attempt)
        # a clock that was set back must not make us wait for it
        if self._next_attempt is None or 0 < self._next_attempt - now <= _LONGEST_BACKOFF:
            return
        # the addresses of a host are tried in turn
        family, kind, protocol, _, address = self._addresses[0]
        self._addresses.append(self._addresses.pop(0))
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        self._attempt, self._attempted, self._next_attempt = sock, now, None
        if sock.connect_ex(address) in (0, errno.EINPROGRESS):
            self._selecting.register(sock, selectors.EVENT_WRITE)
        else:
            self._give_up(sock, registered=False)

    def _complete(self, sock: socket.socket) -> None:
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._give_up(sock)
            return
        self._selecting.unregister(sock)
        self._attempt = None
        if self._add(sock):
            self.context.logger.warning("%s: connected again", self._where)
        else:
            self._try_later()

    def _give_up(self, sock: socket.socket, registered: bool = True) -> None:
        if registered:
            self._selecting.unregister(sock)
        sock.close()
        self._attempt = None
        self._try_later()

    def _try_later(self) -> None:
        self._next_attempt = self.context.now() + self._backoff
        self._backoff = min(_LONGEST_BACKOFF, self._backoff * 2)
