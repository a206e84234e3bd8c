"""The HTTP server of a run's metrics and of its page: bounded, so that no local user can take what the run needs.

Any user of this machine may connect to the loopback. One who opens connections and says nothing would take a thread and a descriptor
for each, until the run had none left. So there are few at a time, the oldest goes for the newest, and each has seconds to ask.
"""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from esault.ui.listen_address import family_of

if TYPE_CHECKING:
    import ssl

__all__ = ["Application", "HttpServer"]

#: connections at a time, and seconds in which each must ask
MOST, PATIENCE = 16, 5.0
#: seconds until the next look at the listening socket where no connection can be accepted
_NO_DESCRIPTORS = 0.1
_HOSTS = frozenset(("127.0.0.1", "localhost", "[::1]"))

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class _Writer(io.BufferedIOBase):
    """The end to which answers are written. Whatever the error by which a reader is found gone, wsgiref says nothing of it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Send all of it. Raises ConnectionAbortedError."""
        try:
            self._connection.sendall(data)
        except OSError as error:  # of TLS: SSLEOFError, which is none of ConnectionError
            raise ConnectionAbortedError(str(error)) from error
        return len(data)


class _Handler(WSGIRequestHandler):
    timeout = PATIENCE

    def setup(self) -> None:
        """Make what reads and writes."""
        super().setup()
        self.wfile = _Writer(self.connection)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the terminal shows the run."""

    def address_string(self) -> str:
        """Return the address alone: its name would be asked for over the network."""
        return str(self.client_address[0])


class HttpServer(ThreadingMixIn, WSGIServer):
    """Serves one application on this machine's loopback, in threads of its own, from `start` until `close`."""

    daemon_threads = True
    #: callers that wait to be accepted: with five, as it is by default, one too many is heard a second later
    request_queue_size = 128

    def __init__(
        self, host: str, port: int, application: Application, tls: ssl.SSLContext | None = None, guarded: bool = True
    ) -> None:
        """Listen. Port 0: any that is free. `guarded`: only requests that name this machine are answered. Raises OSError."""
        self.address_family = family_of(host)
        super().__init__((host, port), _Handler)
        self._tls = tls
        self.set_app(_only_by_local_name(application) if guarded else application)
        self._open: dict[socket.socket, None] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Answer from now on."""
        # It looks so often whether it is to end, and a run waits for that at its own end.
        threading.Thread(target=self.serve_forever, args=(0.1,), name="esault-http", daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        self.shutdown()
        self.server_close()
        with self._lock:
            for connection in self._open:
                _cut(connection)

    def server_bind(self) -> None:
        """Bind, without asking a resolver for this machine's full name as HTTPServer does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.socket.getsockname()[:2]  # of IPv6 it is longer
        self.setup_environ()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept. The base class goes on after an OSError."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_NO_DESCRIPTORS)  # the socket stays readable, and the loop would spin
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread. The one that has waited longest without an answer goes for one too many."""
        with self._lock:
            self._open[request] = None
            if len(self._open) > MOST:
                oldest = next(iter(self._open))
                del self._open[oldest]
                _cut(oldest)
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no more threads: this one asks again
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Agree on keys here, in the connection's own thread: a caller that does not speak TLS holds up no other."""
        if self._tls is not None:
            request.settimeout(PATIENCE)
            try:
                secured = self._tls.wrap_socket(request, server_side=True)
            except OSError:
                self.shutdown_request(request)
                return
            with self._lock:
                self._open[secured] = self._open.pop(request, None)
            request = secured
        super().process_request_thread(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Hang up; called for each connection when it is over."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of those who hang up or never ask."""


def _cut(connection: socket.socket) -> None:
    """End it for the thread that reads from it, which then closes it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _only_by_local_name(application: Application) -> Application:
    """Refuse requests for another host: a page in a browser could have its own name lead here, and read what is answered."""

    def guarded(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        host = environ.get("HTTP_HOST", "localhost")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name in _HOSTS:
            return application(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain")])
        return [b"ask for http://127.0.0.1 or http://localhost\n"]

    return guarded
