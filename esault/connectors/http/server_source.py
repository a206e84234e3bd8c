"""Rows that clients POST.

It is one module of over 300 lines: what a request must be and what it is answered hang on one server.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import socket
import ssl
import uuid
from typing import Any, ClassVar

from esault.background import BackgroundLoop
from esault.connectors.http.body import BodyError, BodyFormat
from esault.connectors.http.library import library
from esault.connectors.http.listen import listening, server_tls
from esault.connectors.http.posts import Post, Posts, is_text
from esault.errors import SourceError, TopologyError
from esault.topology.context import Context
from esault.topology.spout import EndOfStream, Spout

__all__ = ["HttpServerSource"]

#: seconds in which a body must have come, TLS have been agreed on, the server have begun
_BODY_WITHIN, _TLS_WITHIN, _BEGIN_WITHIN = 30.0, 5.0, 10.0
#: seconds that a connection may stay without a request, and that those get at a stop to have their answers
_IDLE, _LAST_WAIT = 75.0, 2.0
#: seconds after which one that was refused should come again
_RETRY_AFTER = 1


class HttpServerSource(Spout[Any, Any]):
    """Rows that clients POST to this server; needs `esault[http]`.

    `format="json"`: a body is an object, which is one row, or a list of rows, or by its content type (application/x-ndjson) one row for
    each line. `format="lines"`: a row of text for each line. A function from bytes returns the values of the rows. `key` is the name
    of a field, a function of the value, or None. A body with a bad row is refused (400), and none of its rows is taken.

    `answer="accepted"`: the answer is 202 when rows wait in memory. `answer="durable"`: it is 200, and comes when what followed from all
    of them is durable, with checkpoints as late as one is complete; a client asks for the same with the header "Prefer: wait".
    Rows with an Idempotency-Key are not taken twice: in this process, and with checkpoints by the state folder.

    `token`: requests without "Authorization: Bearer TOKEN" are refused (401); without a token, those of pages in browsers (403). `certificate` and `private_key` are PEM files for TLS.
    `max_body` bytes are taken at once (413). Where `max_waiting` rows, or 64 MB, wait, the answer is 503 with Retry-After. Of
    `max_connections` the one that has been idle for longest goes when another one comes.
    """

    seekable = False
    takes_ahead = True
    delivery_guarantee: ClassVar[str] = (
        'at least once with answer="durable"; else rows that were answered with 202 and still wait in memory are lost'
    )
    extra: ClassVar[str] = "http"

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8080,
        *,
        path: str = "/",
        format: Any = "json",
        key: Any = None,
        answer: str = "accepted",
        token: str | None = None,
        certificate: str | None = None,
        private_key: str | None = None,
        max_body: int = 1024 * 1024,
        max_waiting: int = 10_000,
        max_connections: int = 500,
    ) -> None:
        who = "HttpServerSource"
        if not isinstance(host, str) or not host:
            raise TopologyError(
                f'{who}: host={host!r}: write a name or an address such as "127.0.0.1"; a port is port=8080'
            )
        if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65535:
            raise TopologyError(f"{who}: port={port!r}: write a number from 0 (any that is free) to 65535")
        if not isinstance(path, str) or not path.startswith("/"):
            raise TopologyError(f'{who}: path={path!r}: write one that begins with "/"')
        if answer not in ("accepted", "durable"):
            raise TopologyError(f'{who}: answer={answer!r}: write "accepted" or "durable"')
        if token is not None and (not isinstance(token, str) or not token.isascii() or not token):
            raise TopologyError(f"{who}: token: write ASCII text, or None for a server that takes rows from everyone")
        if private_key is not None and certificate is None:
            raise TopologyError(f"{who}: private_key without certificate: name the certificate's PEM file, too")
        for name, most in (("max_body", max_body), ("max_waiting", max_waiting), ("max_connections", max_connections)):
            if not isinstance(most, int) or isinstance(most, bool) or most < 1:
                raise TopologyError(f"{who}: {name}={most!r}: write a number of at least 1")
        self.host, self.port, self.path = host, port, path
        self._format = BodyFormat(who, format, key)
        self._waits, self._token = answer == "durable", token
        self._certificate, self._private_key = certificate, private_key
        self._max_body, self._max_waiting, self._max_connections = max_body, max_waiting, max_connections
        self._posts: Posts | None = None
        self._socket: socket.socket | None = None
        self._background: BackgroundLoop | None = None
        self._server: asyncio.Server | None = None
        self._web: Any = None
        self._http: Any = None
        self._busy: set[Any] = set()
        #: positions are of this object alone
        self._own = uuid.uuid4().hex
        self._said_full = False

    @property
    def address(self) -> tuple[str, int]:
        """Return the address at which it listens, once open; with port 0 the system has chosen the port."""
        return self.host, self.port if self._socket is None else self._socket.getsockname()[1]

    def check(self) -> None:
        """Raises SourceError where the port cannot be had, the certificate cannot be read, or aiohttp is missing."""
        library("HttpServerSource", SourceError)
        self._tls()
        self._bind().close()

    def open(self, context: Context) -> None:
        """Listen. Raises SourceError."""
        library("HttpServerSource", SourceError)
        self.context = context
        self._own = uuid.uuid4().hex
        self._posts = Posts(self._max_waiting, 64 << 20)
        self._socket = self._bind()
        self._background = BackgroundLoop()
        self._background.submit(self._listen(self._socket, self._tls())).result(_BEGIN_WITHIN)

    def read(self, limit: int) -> list[tuple[Any, Any]]:
        """Return rows that have come, up to `limit`."""
        posts = self._taken
        rows = posts.take(limit)
        if rows:
            self._said_full = False
        elif posts.closed and not len(posts):
            raise EndOfStream
        return rows

    def row_ids(self) -> list[str]:
        """Return the names of the rows of the last read: idempotency key and number, or one that no other has."""
        return self._taken.names()

    def position(self) -> tuple[str, int]:
        """Return the number of rows that this object has given."""
        return self._own, 0 if self._posts is None else self._posts.given

    def commit(self, position: Any) -> None:
        """Answer those whose rows are durable."""
        if position is not None and position[0] == self._own and self._posts is not None:
            self._posts.settle(position[1])

    def lag(self) -> int:
        """Return the number of rows that wait."""
        return 0 if self._posts is None else len(self._posts)

    def halt(self) -> None:
        """Take no more: requests are refused with 503, and what was taken still comes."""
        self._taken.close()

    def close(self) -> None:
        """Answer those that wait, and end the server."""
        posts, background, server = self._posts, self._background, self._server
        if posts is not None:
            posts.give_up()
        if background is not None:
            if server is not None:
                background.submit(self._end(server)).result(_LAST_WAIT + 1)
            background.close()
        if self._socket is not None:
            self._socket.close()
        self._background = self._server = self._socket = None

    @property
    def _taken(self) -> Posts:
        if self._posts is None:
            raise SourceError("HttpServerSource: open(context) comes before read")
        return self._posts

    @property
    def _where(self) -> str:
        return f"HttpServerSource {self.host}:{self.port}"

    def _bind(self) -> socket.socket:
        return listening(self._where, self.host, self.port, SourceError)

    def _tls(self) -> ssl.SSLContext | None:
        return server_tls(self._where, self._certificate, self._private_key, SourceError)

    # in the thread of the server -------------------------------------------------------------------

    async def _listen(self, sock: socket.socket, tls: ssl.SSLContext | None) -> None:
        from aiohttp import web

        source = self

        class Server(web.Server):
            def connection_made(self, handler: Any, transport: Any) -> None:
                super().connection_made(handler, transport)
                if len(self._connections) > source._max_connections:
                    # those that have been there for longest come first
                    idle = next((one for one in self._connections if one not in source._busy), handler)
                    self._connections.pop(idle, None)
                    idle.force_close()

        def request(*of: Any) -> Any:
            made: Any = web.BaseRequest
            return made(*of, asyncio.get_running_loop(), client_max_size=self._max_body)

        quiet = logging.getLogger("esault.http")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        self._http = web
        self._web = Server(
            self._answer,
            request_factory=request,
            handler_cancellation=True,
            access_log=None,
            logger=quiet,
            keepalive_timeout=_IDLE,
        )
        within = None if tls is None else _TLS_WITHIN
        self._server = await asyncio.get_running_loop().create_server(
            self._web, sock=sock, ssl=tls, ssl_handshake_timeout=within
        )

    async def _end(self, server: asyncio.Server) -> None:
        server.close()
        await asyncio.sleep(0)  # those that waited are answered
        await self._web.shutdown(_LAST_WAIT)

    async def _answer(self, request: Any) -> Any:
        self._busy.add(request.protocol)
        try:
            return await self._answered(request)
        finally:
            self._busy.discard(request.protocol)

    async def _answered(self, request: Any) -> Any:
        if self._token is not None and not hmac.compare_digest(
            request.headers.get("Authorization", "").encode(), f"Bearer {self._token}".encode()
        ):
            return self._refused(401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"})
        if self._token is None and "Origin" in request.headers:
            return self._refused(403, "without a token nothing is taken from pages in browsers")
        if request.path != self.path:
            return self._refused(404, f"rows are taken at {self.path}")
        if request.method != "POST":
            return self._refused(405, "rows are taken with POST", {"Allow": "POST"})
        if (request.content_length or 0) > self._max_body:
            return self._refused(413, f"a body has at most {self._max_body} bytes")
        try:
            body = await asyncio.wait_for(request.read(), _BODY_WITHIN)
        except asyncio.TimeoutError:
            return self._refused(408, f"the body has not come within {_BODY_WITHIN:g} s")
        except self._http.HTTPRequestEntityTooLarge:
            return self._refused(413, f"a body has at most {self._max_body} bytes")
        return await self._take(request, body)

    async def _take(self, request: Any, body: bytes) -> Any:
        posts = self._taken
        key = request.headers.get("Idempotency-Key")
        if key is not None and not is_text(key):  # rows are named by it, wherever they go
            return self._refused(400, "the Idempotency-Key is no text in UTF-8", close=False)
        digest = b"" if key is None else hashlib.sha256(body).digest()
        post = None if key is None else posts.known(key)
        if post is None:
            try:
                rows = self._format.rows(body, request.content_type)
            except BodyError as error:
                return self._refused(400, str(error), close=False)
            post = Post(key or uuid.uuid4().hex, rows, len(body), digest)
            if not rows:
                return self._said(200, {"rows": 0})
            if not posts.put(post, key):
                return self._full(posts)
        elif post.digest != digest:
            return self._refused(422, "this Idempotency-Key came with another body", close=False)
        if not self._waits and "wait" not in request.headers.get("Prefer", ""):
            return self._said(202, {"taken": True})
        if await asyncio.shield(asyncio.wrap_future(post.durable)):
            return self._said(200, {"durable": True})
        return self._refused(503, "not known to be durable: send it again", {"Retry-After": str(_RETRY_AFTER)})

    def _full(self, posts: Posts) -> Any:
        if posts.closed:
            return self._refused(503, "the run stops", {"Retry-After": str(_RETRY_AFTER)})
        if not self._said_full:
            self._said_full = True
            self.context.logger.warning(
                "%s: %d rows wait: POSTs are refused until they are read", self._where, len(posts)
            )
        return self._refused(503, "too many rows wait", {"Retry-After": str(_RETRY_AFTER)}, close=False)

    def _refused(self, status: int, error: str, headers: dict[str, str] | None = None, close: bool = True) -> Any:
        return self._said(status, {"error": error}, {**(headers or {}), **({"Connection": "close"} if close else {})})

    def _said(self, status: int, what: dict[str, Any], headers: dict[str, str] | None = None) -> Any:
        answer = self._http.Response(
            status=status, text=json.dumps(what), content_type="application/json", headers=headers
        )
        if headers and "Connection" in headers:
            answer.force_close()
        return answer
