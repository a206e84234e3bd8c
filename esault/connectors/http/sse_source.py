"""Events that a web service sends as they happen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from esault.connectors.http.incoming import Incoming, answer_refused, tls_trouble
from esault.connectors.http.incoming_spout import IncomingSpout
from esault.connectors.http.library import library
from esault.connectors.http.retries import PASSING, retry_after
from esault.connectors.http.service import Service
from esault.errors import SourceError, TopologyError
from esault.topology.arguments import check_seconds
from esault.topology.context import Context

__all__ = ["Event", "EventParser", "SseSource"]

#: bytes of an event at most: what is longer is no event
_LONGEST = 16 << 20
#: seconds in which an answer must begin
_ANSWER_WITHIN = 30.0


class Event(NamedTuple):
    """One event; `id` is the last one that was said, "" where none was."""

    kind: str
    data: str
    id: str


class EventParser:
    """Events from bytes as they come; as the standard for server-sent events (WHATWG HTML, 9.2) says."""

    def __init__(self, last_id: str) -> None:
        #: of the last event that is complete: one that is cut off must come again
        self.last_id = self._id = last_id
        #: seconds that the server asks for before a new connection
        self.retry: float | None = None
        self._rest = b""
        self._data: list[str] = []
        self._kind = ""
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that are complete. Raises ValueError for one that is too long."""
        data = self._rest + chunk
        if not self._begun and len(data) >= 3:
            self._begun = True
            data = data.removeprefix(b"\xef\xbb\xbf")
        # a "\r" at the end may be half a line's end
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if not data.endswith(b"\r") else None
        if lines is None:
            lines = data[:-1].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            *whole, rest = lines.split(b"\n")
            self._rest = rest + b"\r"
        else:
            *whole, self._rest = lines.split(b"\n")
        if len(self._rest) + sum(map(len, self._data)) > _LONGEST:
            raise ValueError(f"an event has more than {_LONGEST >> 20} MB")
        for line in whole:
            found = self._line(line.decode(errors="replace"))
            if found is not None:
                yield found

    def _line(self, line: str) -> Event | None:
        if not line:
            self.last_id = self._id
            made = Event(self._kind or "message", "\n".join(self._data), self.last_id) if self._data else None
            self._data, self._kind = [], ""
            return made
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry = int(value) / 1000
        return None


class SseSource(IncomingSpout[str]):
    """Server-sent events of a web service; needs `esault[http]`. Key: the event's type, value: its data.

    `format="json"` reads the data as JSON, "text" leaves it as it is. When the connection ends, or nothing has come for `silence` seconds, it connects again,
    and tells the server the last id (Last-Event-ID): a server that keeps events goes on behind it, also with `--resume`. Of
    one that keeps none, events that happen meanwhile are lost. That the server is away is said once. An answer 204 ends the stream,
    as the standard says; a refusal ends the run.
    """

    seekable = False
    takes_ahead = True
    delivery_guarantee: ClassVar[str] = (
        "with checkpoints each event counts once where the server goes on behind Last-Event-ID; else those sent meanwhile are lost"
    )

    def __init__(
        self,
        url: str,
        *,
        format: str = "json",
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        silence: float = 300.0,
    ) -> None:
        super().__init__(Service("SseSource", url, "https://example.org/events", headers, token))
        if format not in ("json", "text"):
            raise TopologyError(f'SseSource: format={format!r}: write "json" or "text"')
        self._parses, self._silence = format == "json", check_seconds("SseSource", "silence", silence)

    def open(self, context: Context) -> None:
        """Nothing yet: the first read connects."""
        library("SseSource", SourceError)
        self.context = context
        self._incoming = Incoming(self._who, context.logger.warning, "")

    def position(self) -> str:
        """Return the id of the last event; "": it had none."""
        return "" if self._incoming is None else self._incoming.position

    def commit(self, position: Any) -> None:
        """Right behind `open`: go on behind what an earlier process has read."""
        if not self._started and position is not None and self._incoming is not None:
            self._incoming.position = position

    # in the thread of the client -------------------------------------------------------------------

    async def _fill(self, incoming: Incoming) -> None:
        aiohttp = library("SseSource", SourceError)
        last_id: str = incoming.position
        limit = aiohttp.ClientTimeout(total=None, sock_read=self._silence)
        retry: float | None = None
        async with aiohttp.ClientSession(timeout=limit, headers=self._service.headers) as session:
            while True:
                headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
                if last_id:
                    headers["Last-Event-ID"] = last_id
                asked = None
                try:
                    asking = session.get(self._service.url, headers=headers)
                    async with await self._begun(asking) as answer:
                        if answer.status == 204:
                            return
                        if answer.status == 200:
                            self._examine(answer.content_type)
                            incoming.answered()
                            parser = EventParser(last_id)
                            async for chunk in answer.content.iter_any():
                                await incoming.put([self._row(event) for event in parser.feed(chunk)])
                                # an id stands for the events before it: those were put in the queue
                                last_id, retry = parser.last_id, parser.retry
                            trouble = "the connection has ended"
                        elif answer.status >= 500 or answer.status in PASSING:
                            trouble = f"it says {answer.status} {answer.reason}"
                            asked = retry_after(answer.headers.get("Retry-After"))
                        else:
                            raise answer_refused(
                                self._who, answer.status, answer.reason, await answer.text(errors="replace")
                            )
                except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
                    trouble = tls_trouble(self._who, error)
                except (aiohttp.ClientError, asyncio.TimeoutError) as error:
                    trouble = str(error) or f"nothing came for {self._silence:g} s"
                await incoming.pause(trouble, asked if asked is not None else retry)

    async def _begun(self, asking: Awaitable[Any]) -> Any:
        """The answer, once its head has come."""
        try:
            return await asyncio.wait_for(asking, _ANSWER_WITHIN)
        except asyncio.TimeoutError:
            raise asyncio.TimeoutError(f"no answer within {_ANSWER_WITHIN:g} s") from None

    def _examine(self, content_type: str) -> None:
        if content_type != "text/event-stream":
            raise SourceError(f"{self._who}: the answer is {content_type}, not text/event-stream; correct the url")

    def _row(self, event: Event) -> tuple[tuple[str, Any], str]:
        try:
            value = json.loads(event.data) if self._parses else event.data
        except ValueError as error:
            raise SourceError(f'{self._who}: {event.data[:200]!r} is no JSON ({error}); take format="text"') from None
        return (event.kind, value), event.id
