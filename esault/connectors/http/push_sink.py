"""The base of the sinks that push rows to those who are connected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar

from esault.connectors.http.library import library
from esault.connectors.http.listen import listening, server_tls
from esault.connectors.http.push_link import Link, place
from esault.connectors.http.push_server import Access, Client, PushServer, local_names
from esault.errors import SinkError, TopologyError
from esault.sinks.json_row import encode_value
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo, Sink

__all__ = ["PushSink"]


class PushSink(Sink):
    """A server in the first process of the run, which sub-units send their rows to. `connected`: the protocol of its clients."""

    on_one_host: ClassVar[bool] = True
    extra: ClassVar[str] = "http"
    #: whether text that `body` returns is sent as it is
    sends_text: ClassVar[bool] = False

    def __init__(
        self,
        port: int,
        host: str = "127.0.0.1",
        *,
        path: str = "/",
        body: Callable[[Any, Any], Any] | None = None,
        buffer: int = 10_000,
        start: str = "latest",
        token: str | None = None,
        origins: Collection[str] = (),
        certificate: str | None = None,
        private_key: str | None = None,
        max_clients: int = 100,
    ) -> None:
        who = type(self).__name__
        if not isinstance(port, int) or isinstance(port, bool) or not 0 < port <= 65535:
            raise TopologyError(f"{who}: port={port!r}: write a number from 1 to 65535")
        if not isinstance(host, str) or not host:
            raise TopologyError(f'{who}: host={host!r}: write a name or an address such as "127.0.0.1"')
        if not isinstance(path, str) or not path.startswith("/"):
            raise TopologyError(f'{who}: path={path!r}: write one that begins with "/"')
        if body is not None and not callable(body):
            raise TopologyError(f"{who}: body={body!r}: write a function of key and value")
        for name, number in (("buffer", buffer), ("max_clients", max_clients)):
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise TopologyError(f"{who}: {name}={number!r}: write a number of at least 1")
        if start not in ("latest", "earliest"):
            raise TopologyError(f'{who}: start={start!r}: write "latest" or "earliest"')
        if token is not None and (not isinstance(token, str) or not token.isascii() or not token):
            raise TopologyError(f"{who}: token: write ASCII text, or None for a server that everyone may listen to")
        if isinstance(origins, str) or not isinstance(origins, Iterable):
            raise TopologyError(f'{who}: origins={origins!r}: write a list, such as ["https://example.org"]')
        if private_key is not None and certificate is None:
            raise TopologyError(f"{who}: private_key without certificate: name the certificate's PEM file, too")
        self.host, self.port = host, port
        self._who = f"{who} {host}:{port}"
        self._body, self._buffer = body, buffer
        #: gives the kind of a row, where the protocol knows kinds
        self._event: Callable[[Any, Any], str] | None = None
        names = local_names(host) if token is None else ()
        self._access = Access(path, token, frozenset(origins), max_clients, start, names)
        self._certificate, self._private_key = certificate, private_key
        self._server: PushServer | None = None
        self._link: Link | None = None
        self._said_dropped = False

    @staticmethod
    async def connected(web: Any, request: Any) -> tuple[Client, Any]:
        """Answer a request; the client, and the response that aiohttp is to have. `web`: aiohttp's module."""
        raise NotImplementedError

    # in the driver ---------------------------------------------------------------------------------

    def destination(self) -> str:
        """Return where rows go, for people."""
        return f"port {self.port} of {self.host}"

    def check(self) -> None:
        """Raises SinkError where the port cannot be had, the certificate cannot be read, or aiohttp is missing."""
        library(type(self).__name__, SinkError)
        server_tls(self._who, self._certificate, self._private_key, SinkError)
        listening(self._who, self.host, self.port, SinkError).close()

    def begin(self, run: RunInfo) -> None:
        """Listen. Raises SinkError."""
        tls = server_tls(self._who, self._certificate, self._private_key, SinkError)
        sock = listening(self._who, self.host, self.port, SinkError)
        self._server = PushServer(self._who, self.connected, self._access, self._buffer)
        self._server.begin(sock, tls, place(run.run, run.unit))

    def end(self, ok: bool) -> None:
        """Let clients have the last rows, and end."""
        server, self._server = self._server, None
        if server is not None:
            server.end()

    # in sub-units ----------------------------------------------------------------------------------

    def open(self, context: Context) -> None:
        """Nothing yet: the first rows connect."""
        self.context = context
        self._link, self._said_dropped = None, False

    def write(self, rows: Sequence[Row]) -> None:
        """Hand them over; nothing waits for it."""
        if self._link is None:
            self._link = Link(place(self.context.run, self.context.unit))
        if self._link.error is not None:
            raise SinkError(f"{self._who}: the server of this run cannot be reached: {self._link.error}")
        if self._link.put([self._pair(row.key, row.value) for row in rows]) and not self._said_dropped:
            self._said_dropped = True
            self.context.logger.warning("%s: rows come faster than they can be pushed: some are dropped", self._who)

    def _pair(self, key: Any, value: Any) -> tuple[str, str]:
        body = {"key": key, "value": value} if self._body is None else self._body(key, value)
        text = (
            body
            if self.sends_text and self._body is not None and isinstance(body, str)
            else encode_value(body).decode()
        )
        return "" if self._event is None else str(self._event(key, value)), text

    def prepare(self, epoch: int) -> Future[None] | None:
        """Wait, beside the data loop, until the server has what was written."""
        return None if self._link is None else self._link.sent()

    def close(self) -> None:
        """Send what waits."""
        link, self._link = self._link, None
        if link is not None:
            link.close()
