"""The control socket's requests over TLS, from other machines: who may ask for what is said by the role of the key that is shown.

One request a connection, as at the control socket (`control_socket`). Each has a thread for as long as it is being read.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time

from esault.cluster.address import join, split
from esault.cluster.audit import AuditLog
from esault.cluster.connection import Strangers, listen
from esault.cluster.key import ClusterKey
from esault.errors import UsageError
from esault.runtime.session.control_socket import MOST, Caller, ControlSocket, read_request

__all__ = ["RemoteControl"]

#: seconds for the handshake and the request
_WITHIN = 5.0


class RemoteControl(threading.Thread):
    """Hands requests to the callers of a run's control socket."""

    def __init__(self, address: str, key: ClusterKey, audit: AuditLog | None) -> None:
        """Listens at once; what calls is heard once it is started. Raises UsageError."""
        super().__init__(name="esault-remote-control", daemon=True)
        if not key.is_cluster:
            raise UsageError(
                f"--control: {key.path} is a key with a role, which no caller takes for the run: say the cluster's own"
            )
        host, port = split(address)
        try:
            self._listener = listen(host, port)
        except OSError as error:
            raise UsageError(
                f"--control {address}: {error.strerror or error}; name another port, or an address of this host"
            ) from None
        self._listener.settimeout(1.0)
        self.address = join(host, self._listener.getsockname()[1])
        self._key, self._audit = key, audit
        self._to: ControlSocket | None = None
        self._places = threading.Semaphore(MOST)
        self._strangers = Strangers("--control")
        self._closed = False

    def serve(self, to: ControlSocket) -> None:
        """Hear requests from now on, in a thread."""
        self._to = to
        self.start()

    def run(self) -> None:
        """The thread."""
        while not self._closed:
            try:
                made, _ = self._listener.accept()
            except TimeoutError:
                self._strangers.tell()
                continue
            except OSError:
                if not self._closed:
                    time.sleep(0.1)  # no descriptor is left: who asks waits
                continue
            if not self._places.acquire(blocking=False):
                self._strangers.note(_peer(made), "too many at a time")
                made.close()
                continue
            try:
                threading.Thread(target=self._hear, args=(made,), daemon=True).start()
            except RuntimeError:  # no further thread is allowed
                self._hear(made)

    def _hear(self, made: socket.socket) -> None:
        try:
            self._take(made)
        finally:
            self._places.release()

    def _take(self, made: socket.socket) -> None:
        until, peer = time.monotonic() + _WITHIN, _peer(made)
        made.settimeout(_WITHIN)
        try:
            # A timer, since each byte that comes would begin the time anew.
            same = made.dup()  # TLS takes the first one away
            timer = threading.Timer(_WITHIN, _shut, (same,))
            timer.daemon = True
            timer.start()
            try:
                connection = self._key.server.wrap_socket(made, server_side=True)
                who = self._key.peer(connection)
                caller = Caller(connection, str(who), peer)
                request = read_request(connection)
            finally:
                timer.cancel()
                same.close()
        except (OSError, ssl.SSLError, ValueError) as error:
            why = "it said no request in time" if time.monotonic() > until else str(error)
            self._strangers.note(peer, why)
            if self._audit is not None:
                self._audit.write("", peer, "connect", why)
            made.close()
            return
        if not who.may(request.role):
            why = f"this takes a key with the role {request.role!r}, and yours has {who.role!r}"
            if self._audit is not None:
                self._audit.write(str(who), peer, request.do, why)
            caller.answer(error=why)
            return
        caller.request = request
        assert self._to is not None
        self._to.callers.append(caller)

    def close(self) -> None:
        """Let no caller in any more. The port is free at once."""
        self._closed = True
        _shut(self._listener)  # `accept` in the thread would hold it for a second
        self._listener.close()


def _peer(made: socket.socket) -> str:
    try:
        host, port, *_ = made.getpeername()
    except OSError:
        return "a caller that has hung up"
    return f"{host}:{port}"


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other side has ended it just now
        connection.shutdown(socket.SHUT_RDWR)
