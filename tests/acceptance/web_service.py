"""A web service in a process of its own, to be killed and started again: `python web_service.py PORT FOLDER COUNT`.

What it has offered (`offered`, a number that grows as long as it runs) and what was POSTed to it (`taken.jsonl`, without repeats) stand in
its folder, so that it goes on where it was.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from aiohttp import web

#: numbers that are offered in a second
RATE = 150


class Service:
    """The numbers from 0 to `count`: by events, by WebSocket, to be asked for, and taken back by POST."""

    def __init__(self, folder: Path, count: int) -> None:
        self.count = count
        self._file, self._pushed = folder / "offered", folder / "pushed"
        #: as long as it is there nothing is on its way to those who listen, and nothing is lost by a kill
        self._still = folder / "still"
        self.offered = int(self._file.read_text()) if self._file.exists() else 0
        self._taken = (folder / "taken.jsonl").open("a", buffering=1)
        self._keys = {json.loads(line)["by"] for line in (folder / "taken.jsonl").read_text().splitlines()}

    async def offer(self, _: Any) -> None:
        self._offering = asyncio.ensure_future(self._offer())

    async def _offer(self) -> None:
        while self.offered < self.count:
            await asyncio.sleep(10 / RATE)
            self.offered = min(self.count, self.offered + 10)
            self._file.write_text(str(self.offered))

    async def events(self, request: web.Request) -> web.StreamResponse:
        at = int(request.headers.get("Last-Event-ID", -1)) + 1
        if at >= self.count:
            return web.Response(status=204)
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        while at < self.count:
            while at < self.offered:
                await answer.write(f'id: {at}\ndata: {{"n": {at}}}\n\n'.encode())
                at += 1
            await asyncio.sleep(0.02)
        return answer

    async def rows(self, request: web.Request) -> web.Response:
        return web.json_response([{"n": n} for n in range(int(request.query.get("from", 0)), self.offered)])

    async def feed(self, request: web.Request) -> web.WebSocketResponse:
        """Send each number once, whoever listens: a WebSocket knows no position."""
        connection = web.WebSocketResponse()
        await connection.prepare(request)
        at = int(self._pushed.read_text()) if self._pushed.exists() else 0
        while not connection.closed and at < self.count:
            if at < self.offered and not self._still.exists():
                await connection.send_json({"n": at})
                at += 1
                self._pushed.write_text(str(at))
            else:
                await asyncio.sleep(0.02)
        await connection.receive()
        return connection

    async def take(self, request: web.Request) -> web.Response:
        row = {"by": request.headers["Idempotency-Key"], "row": await request.json()}
        if row["by"] not in self._keys:
            self._taken.write(json.dumps(row) + "\n")
            self._keys.add(row["by"])
        return web.Response()


if __name__ == "__main__":
    service = Service(Path(sys.argv[2]), int(sys.argv[3]))
    application = web.Application()
    routes = (("events", service.events), ("rows", service.rows), ("feed", service.feed))
    application.add_routes([*(web.get(f"/{name}", answer) for name, answer in routes), web.post("/take", service.take)])
    application.on_startup.append(service.offer)
    web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
