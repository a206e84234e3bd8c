"""A server of WebSockets for tests: in a thread of this process, on a real socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from esault.background import BackgroundLoop


@contextlib.contextmanager
def serving(talk: Callable[[Any], Awaitable[None]], port: int = 0) -> Iterator[str]:
    """Give the url of a server each of whose connections is `talk(connection)`, of aiohttp; who says the token "wrong" is refused."""
    from aiohttp import web

    background = BackgroundLoop()

    async def handle(request: Any) -> Any:
        if request.headers.get("Authorization") == "Bearer wrong":
            return web.Response(status=401)
        connection = web.WebSocketResponse()
        await connection.prepare(request)
        with contextlib.suppress(ConnectionError):  # a client that was killed
            await talk(connection)
            await connection.close()
        return connection

    async def begin() -> Any:
        server = web.Server(handle)
        listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", port)
        return server, listening, listening.sockets[0].getsockname()[1]

    async def end(server: Any, listening: Any) -> None:
        listening.close()
        await server.shutdown(1)

    server, listening, bound = background.submit(begin()).result(10)
    try:
        yield f"ws://127.0.0.1:{bound}/feed"
    finally:
        background.submit(end(server, listening)).result(10)
        background.close()
