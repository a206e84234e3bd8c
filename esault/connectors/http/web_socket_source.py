"""Messages of a WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from esault.connectors.http.incoming import Incoming, answer_refused, tls_trouble
from esault.connectors.http.incoming_spout import IncomingSpout
from esault.connectors.http.library import library
from esault.connectors.http.retries import PASSING
from esault.connectors.http.service import Service
from esault.errors import SourceError, TopologyError
from esault.topology.context import Context

__all__ = ["WebSocketSource"]

#: seconds between two pings: where none is answered the connection is taken for gone
_HEARTBEAT = 30.0
#: seconds until a connection must stand and the server has agreed to it, bytes of a message at most
_CONNECT_WITHIN, _LONGEST = 30.0, 16 << 20


class WebSocketSource(IncomingSpout[None]):
    """Messages that a server sends by a WebSocket; needs `esault[http]`. Key: None, value: the message.

    `format="json"` reads a message as JSON, "text" leaves it as it is; binary messages are bytes. `send` are texts, or objects that are
    sent as JSON, to send whenever it has connected, such as a subscription. It connects again where the connection ends, which is
    said once while the server is away; with `reconnect=False` that is the end of the stream. What is sent while it is not
    connected is lost: the protocol knows no position. A refusal (401, 404) ends the run.
    """

    takes_ahead = True
    delivery_guarantee: ClassVar[str] = (
        "what is sent while it is not connected is lost; with checkpoints nothing that was read"
    )

    def __init__(
        self,
        url: str,
        *,
        format: str = "json",
        send: Sequence[Any] = (),
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        reconnect: bool = True,
    ) -> None:
        super().__init__(Service("WebSocketSource", url, "wss://example.org/feed", headers, token))
        if format not in ("json", "text"):
            raise TopologyError(f'WebSocketSource: format={format!r}: write "json" or "text"')
        if isinstance(send, (str, bytes, Mapping)) or not isinstance(send, Iterable):
            raise TopologyError(f"WebSocketSource: send={send!r}: write a list of messages")
        self._parses, self._reconnect = format == "json", reconnect
        self._first = [message if isinstance(message, str) else json.dumps(message) for message in send]

    def open(self, context: Context) -> None:
        """Connect, in the background."""
        library("WebSocketSource", SourceError)
        self.context = context
        self._incoming = Incoming(self._who, context.logger.warning, None)
        self._start()

    # in the thread of the client -------------------------------------------------------------------

    async def _fill(self, incoming: Incoming) -> None:
        aiohttp = library("WebSocketSource", SourceError)
        limit = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(timeout=limit, headers=self._service.headers) as session:
            while True:
                try:
                    asked = session.ws_connect(self._service.url, heartbeat=_HEARTBEAT, max_msg_size=_LONGEST)
                    async with await asyncio.wait_for(asked, _CONNECT_WITHIN) as connection:
                        for message in self._first:
                            await connection.send_str(message)
                        incoming.answered()
                        async for message in connection:
                            if message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                                await incoming.put([((None, self._value(message.data)), None)])
                    trouble = f"the connection has ended ({connection.close_code})"
                except aiohttp.WSServerHandshakeError as error:
                    if error.status < 500 and error.status not in PASSING:
                        raise answer_refused(self._who, error.status, "", error.message) from None
                    trouble = f"it says {error.status}"
                except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
                    trouble = tls_trouble(self._who, error)
                except (aiohttp.ClientError, asyncio.TimeoutError) as error:
                    trouble = str(error) or f"no answer within {_CONNECT_WITHIN:g} s"
                if not self._reconnect:
                    return
                await incoming.pause(trouble)

    def _value(self, data: Any) -> Any:
        if not self._parses or isinstance(data, bytes):
            return data
        try:
            return json.loads(data)
        except ValueError as error:
            raise SourceError(f'{self._who}: {data[:200]!r} is no JSON ({error}); take format="text"') from None
