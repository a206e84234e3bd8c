"""Rows as server-sent events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

from esault.connectors.http.push_buffer import Pushed
from esault.connectors.http.push_sink import PushSink
from esault.errors import TopologyError

__all__ = ["SseSink"]


class _Stream:
    """A client of server-sent events (WHATWG HTML, 9.2)."""

    def __init__(self, response: Any) -> None:
        self._response = response

    async def send(self, rows: Sequence[tuple[str, Pushed]]) -> None:
        if rows:
            await self._response.write("".join(_event(row.event, row.data, id) for id, row in rows).encode())

    async def lost(self, rows: int | None) -> None:
        await self._response.write(_event("lost", f'{{"rows": {"null" if rows is None else rows}}}').encode())

    async def beat(self) -> None:
        await self._response.write(b":\n\n")

    async def end(self, said: str) -> None:
        if said:
            await self._response.write(_event("dropped", f'{{"reason": "{said}"}}').encode())
        else:
            await self._response.write(_event("end", "{}").encode())
        await self._response.write_eof()


def _event(kind: str, data: str, id: str = "") -> str:
    kind = " ".join(_lines(kind)).strip()  # what stands in it may be of a stranger, who could write events of his own
    lines = [f"id: {id}"] * bool(id) + [f"event: {kind}"] * bool(kind) + [f"data: {line}" for line in _lines(data)]
    return "\n".join(lines) + "\n\n"


def _lines(data: str) -> Sequence[str]:
    return data.replace("\r\n", "\n").replace("\r", "\n").split("\n")


class SseSink(PushSink):
    """Pushes rows to those who listen, as server-sent events at http://HOST:PORT/PATH; needs `esault[http]`.

    An event's data is `{"key": ..., "value": ...}` as JSON; `body` makes another one from (key, value): what JSON can say, or text as it
    is to be. `event` gives the event's type. Each has an `id`: a client that comes again with it in Last-Event-ID (a browser does) goes on
    behind it, as far as the last `buffer` rows reach; what is gone is told by an event `lost` with `{"rows": n}`, n null where an earlier
    run had sent it. A client without an id gets what comes from now on; with `start="earliest"` first what is in the buffer.

    Nothing waits for clients. One that is slower than the buffer, or takes nothing for 10 seconds, gets an event `dropped` where it can,
    and is disconnected; it may come again. At the end of the run there is an event `end`.

    It listens on this machine alone, unless `host` is another address. `token` must come as "Authorization: Bearer TOKEN", or as the
    parameter `token`. Web pages may listen whose origin is in `origins`. `certificate` and `private_key` are PEM files for TLS.
    """

    delivery_guarantee: ClassVar[str] = (
        "who listens gets each row, after a crash some twice; who comes again gets what the buffer has, and is told what it has not"
    )
    sends_text: ClassVar[bool] = True

    def __init__(
        self,
        port: int,
        host: str = "127.0.0.1",
        *,
        path: str = "/",
        body: Callable[[Any, Any], Any] | None = None,
        event: Callable[[Any, Any], str] | None = None,
        buffer: int = 10_000,
        start: str = "latest",
        token: str | None = None,
        origins: Collection[str] = (),
        certificate: str | None = None,
        private_key: str | None = None,
        max_clients: int = 100,
    ) -> None:
        super().__init__(
            port,
            host,
            path=path,
            body=body,
            buffer=buffer,
            start=start,
            token=token,
            origins=origins,
            certificate=certificate,
            private_key=private_key,
            max_clients=max_clients,
        )
        if event is not None and not callable(event):
            raise TopologyError(f"SseSink: event={event!r}: write a function of key and value")
        self._event = event

    @staticmethod
    async def connected(web: Any, request: Any) -> tuple[_Stream, Any]:
        """Begin a stream of events."""
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if "Origin" in request.headers:
            headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await response.write(b"retry: 1000\n\n")
        return _Stream(response), response
