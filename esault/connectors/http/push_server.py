"""The server that clients of a push sink are connected to, in the first process of a run."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from esault.background import BackgroundLoop
from esault.connectors.http.push_buffer import PushBuffer, Pushed
from esault.connectors.http.push_link import Received

__all__ = ["Access", "Client", "PushServer", "Way"]

#: seconds in which a client must have taken what was sent to it, between two signs of life, and to agree on TLS
SLOW, HEARTBEAT, _TLS_WITHIN = 10.0, 15.0, 5.0
#: rows sent at once
_AT_ONCE = 256
#: seconds that clients have at the end to get the last rows; the server must begin within
_LAST_WAIT, _BEGIN_WITHIN = 2.0, 10.0
_logger = logging.getLogger("esault.http")


class Access(NamedTuple):
    """The conditions on which clients may listen, and where."""

    path: str
    token: str | None
    #: of web pages
    origins: Collection[str]
    max_clients: int
    #: what a client gets that names no row: "latest", "earliest"
    start: str
    #: names and addresses by which this server may be asked for; empty: any
    hosts: Collection[str]


class Client(Protocol):
    """A client that is connected, in its protocol."""

    async def send(self, rows: Sequence[tuple[str, Pushed]]) -> None:
        """Send rows with their ids; done when they are on their way."""

    async def lost(self, rows: int | None) -> None:
        """Tell it that so many rows are missing here; None: it is not known how many."""

    async def beat(self) -> None:
        """Give a sign of life."""

    async def end(self, said: str) -> None:
        """End the connection; `said` is why, "" that the run is over."""


#: from aiohttp's module `web` and a request: a client, once it is connected, and what is returned to aiohttp
Way = Callable[[Any, Any], Any]


class _TooSlowError(Exception):
    pass


class PushServer:
    """Takes rows from the sub-units and hands them to those who listen."""

    def __init__(self, who: str, way: Way, access: Access, buffer: int) -> None:
        self._who, self._way, self._access = who, way, access
        self._buffer = PushBuffer(buffer)
        self._background = BackgroundLoop()
        self._clients: set[asyncio.Task[Any]] = set()
        self._sub_units: set[asyncio.BaseTransport] = set()
        self._servers: list[asyncio.AbstractServer] = []
        self._web: Any = None
        self._http: Any = None

    def begin(self, sock: socket.socket, tls: ssl.SSLContext | None, address: str) -> None:
        """Listen for clients on `sock`, and for sub-units at `address`."""
        self._background.submit(self._begin(sock, tls, address)).result(_BEGIN_WITHIN)

    def end(self) -> None:
        """Let clients have the last rows, for a while, and end."""
        try:
            self._background.submit(self._end()).result(_LAST_WAIT + 3)
        finally:
            self._background.close()

    async def _begin(self, sock: socket.socket, tls: ssl.SSLContext | None, address: str) -> None:
        from aiohttp import web

        def request(*of: Any) -> Any:
            made: Any = web.BaseRequest
            return made(*of, asyncio.get_running_loop(), client_max_size=1024)

        _logger.addHandler(logging.NullHandler())
        self._http = web
        loop = asyncio.get_running_loop()
        inside = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            inside.bind(address)
        except OSError:
            inside.close()
            raise
        taking = await loop.create_unix_server(
            lambda: Received(self._take, self._buffer.wake, self._sub_units), sock=inside
        )
        quiet = logging.getLogger("esault.http.server")
        quiet.propagate = False
        quiet.addHandler(logging.NullHandler())
        self._web = web.Server(
            self._answer, request_factory=request, handler_cancellation=True, access_log=None, logger=quiet
        )
        within = None if tls is None else _TLS_WITHIN
        serving = await loop.create_server(self._web, sock=sock, ssl=tls, ssl_handshake_timeout=within)
        self._servers = [taking, serving]

    async def _end(self) -> None:
        await asyncio.sleep(0.05)  # what sub-units sent last is read
        self._buffer.ended = True
        self._buffer.wake()
        for server in self._servers:
            server.close()
        if self._clients:
            await asyncio.wait(self._clients, timeout=_LAST_WAIT)
        await self._web.shutdown(0.5)
        for transport in self._sub_units:
            transport.close()
        await asyncio.sleep(0)  # they close in the next round

    def _take(self, event: str, data: str, dropped: int) -> None:
        if dropped:
            self._buffer.add("", "", dropped)
        self._buffer.add(event, data)

    # clients ---------------------------------------------------------------------------------------

    async def _answer(self, request: Any) -> Any:
        refused = self._refusal(request)
        if refused is not None:
            return refused
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        # What a slow client has not read yet stays in the buffer that all share.
        request.transport.set_write_buffer_limits(1 << 16)
        try:
            client, answer = await self._way(self._http, request)
            await self._follow(client, request)
            return answer
        except (ConnectionError, asyncio.TimeoutError):  # it has gone
            return None
        finally:
            self._clients.discard(task)

    async def _follow(self, client: Client, request: Any) -> None:
        buffer = self._buffer
        last = request.headers.get("Last-Event-ID") or request.query.get("last_id")
        at = buffer.behind(last) if last else None
        if at is None:
            at = buffer.first if last or self._access.start == "earliest" else buffer.next
        if last and (buffer.behind(last) is None or at < buffer.first):
            await client.lost(None if buffer.behind(last) is None else buffer.first - at)
            at = buffer.first
        try:
            while True:
                if at < buffer.first:
                    raise _TooSlowError
                rows = buffer.since(at, _AT_ONCE)
                if rows:
                    await asyncio.wait_for(self._send(client, rows), SLOW)
                    at = rows[-1].number + 1
                elif buffer.ended:
                    await client.end("")
                    return
                else:
                    await self._wait(client)
        except (asyncio.TimeoutError, _TooSlowError):
            missing = buffer.next - at
            _logger.warning(
                "%s: the client %s was too slow, and is dropped: %d rows behind", self._who, request.remote, missing
            )
            await self._drop(client, request, f"too slow: {missing} rows behind")

    async def _send(self, client: Client, rows: Sequence[Pushed]) -> None:
        whole: list[tuple[str, Pushed]] = []
        for row in rows:
            if row.lost:
                await client.send(whole)
                await client.lost(row.lost)
                whole = []
            else:
                whole.append((self._buffer.id(row), row))
        if whole:
            await client.send(whole)

    async def _wait(self, client: Client) -> None:
        try:
            await asyncio.wait_for(self._buffer.more(), HEARTBEAT)
        except asyncio.TimeoutError:
            await asyncio.wait_for(client.beat(), SLOW)

    async def _drop(self, client: Client, request: Any, said: str) -> None:
        try:
            await asyncio.wait_for(client.end(said), 1.0)
        except (ConnectionError, asyncio.TimeoutError):
            pass
        finally:
            if request.transport is not None:
                request.transport.abort()  # it may not read at all

    def _refusal(self, request: Any) -> Any:
        access, origin = self._access, request.headers.get("Origin")
        host = urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
        given = request.headers.get("Authorization", "").removeprefix("Bearer ") or request.query.get("token", "")
        if access.token is not None and not hmac.compare_digest(given.encode(), access.token.encode()):
            return self._refused(401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"})
        if access.hosts and host not in access.hosts:  # a page whose name leads to this machine
            return self._refused(403, f"this server is not {host!r}")
        if origin is not None and origin not in access.origins and "*" not in access.origins:
            return self._refused(403, f"pages of {origin} may not listen: origins=[{origin!r}] lets them")
        if request.path != access.path:
            return self._refused(404, f"rows are at {access.path}")
        if request.method != "GET":
            return self._refused(405, "rows are asked for with GET", {"Allow": "GET"})
        if len(self._clients) >= access.max_clients:
            return self._refused(503, "too many clients", {"Retry-After": "5"})
        return None

    def _refused(self, status: int, error: str, headers: dict[str, str] | None = None) -> Any:
        return self._http.json_response({"error": error}, status=status, headers=headers)


def local_names(host: str) -> Collection[str]:
    """Return by what names a server may be asked for that listens on this machine alone; empty: it listens for others."""
    try:
        here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = False
    return frozenset(("localhost", "127.0.0.1", "::1", host)) if here else frozenset()
