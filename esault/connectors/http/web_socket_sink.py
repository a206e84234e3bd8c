"""Rows as messages of WebSockets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from esault.connectors.http.push_buffer import Pushed
from esault.connectors.http.push_sink import PushSink

__all__ = ["WebSocketSink"]

#: closing codes (RFC 6455, and the registry of IANA): the run is over; come again later
_OVER, _LATER = 1001, 1013


class _Socket:
    """A client by WebSocket."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        #: what the client sends is read and dropped, so that its pings and its end are heard
        self._listening = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        async for _ in self._socket:
            pass

    async def send(self, rows: Sequence[tuple[str, Pushed]]) -> None:
        for id, row in rows:
            await self._send(f'{{"id": "{id}", "data": {row.data}}}')

    async def lost(self, rows: int | None) -> None:
        await self._send(f'{{"lost": {"null" if rows is None else rows}}}')

    async def beat(self) -> None:
        self._alive()
        await self._socket.ping()

    async def _send(self, text: str) -> None:
        self._alive()
        await self._socket.send_str(text)

    def _alive(self) -> None:
        if self._socket.closed or self._listening.done():
            raise ConnectionResetError("the client has gone")

    async def end(self, said: str) -> None:
        self._listening.cancel()
        await self._socket.close(code=_LATER if said else _OVER, message=(said or "the run is over").encode())


class WebSocketSink(PushSink):
    """Pushes rows to those who are connected, as messages of a WebSocket at ws://HOST:PORT/PATH; needs `esault[http]`.

    A message is `{"id": ..., "data": {"key": ..., "value": ...}}` as JSON; `body` makes other data from (key, value), which JSON can say.
    A client that comes again with `?last_id=ID` goes on behind that row, as far as the last `buffer` rows reach; what is gone is told by
    `{"lost": n}`, n null where an earlier run had sent it. A client without an id gets what comes from now on; with
    `start="earliest"` first what is in the buffer.

    Nothing waits for clients. One that is slower than the buffer, or takes nothing for 10 seconds, is disconnected with the code 1013; it
    may come again. At the end of the run the code is 1001.

    It listens on this machine alone, unless `host` is another address. `token` must come as "Authorization: Bearer TOKEN", or as the
    parameter `token`. Web pages may connect whose origin is in `origins`. `certificate` and `private_key` are PEM files for TLS.
    """

    delivery_guarantee: ClassVar[str] = (
        "who listens gets each row, after a crash some twice; who comes again gets what the buffer has, and is told what it has not"
    )

    @staticmethod
    async def connected(web: Any, request: Any) -> tuple[_Socket, Any]:
        """Begin to speak WebSocket."""
        socket = web.WebSocketResponse(timeout=1.0)
        await socket.prepare(request)
        return _Socket(socket), socket
