"""Rows pushed by real processes: scaled, a sub-unit killed, a listener that comes and goes; then the run killed and resumed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from ports import free_port
from test_acknowledged import kill_run

pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'esault[http]'")

import aiohttp
import to_listeners

from esault.connectors.http.sse_source import EventParser

pytestmark = pytest.mark.slow
PLACE = f"{Path(to_listeners.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")
ROWS = 6000


class Listener:
    """Comes again with its last id until the run is over, as a browser does."""

    def __init__(self, port):
        self.url, self.rows, self.lost, self.last, self.over = f"http://127.0.0.1:{port}/", [], [], "", False

    async def listen(self, most=None):
        """Until so many rows have come, or the connection ends."""
        headers = {"Last-Event-ID": self.last} if self.last else {}
        async with aiohttp.ClientSession() as session, session.get(self.url, headers=headers) as answer:
            parser = EventParser(self.last)
            async for chunk in answer.content.iter_any():
                for event in parser.feed(chunk):
                    self.last = event.id
                    if event.kind == "message":
                        self.rows.append(json.loads(event.data)["value"])
                    elif event.kind == "lost":
                        self.lost.append(json.loads(event.data)["rows"])
                    else:
                        self.over = event.kind == "end"
                    if len(self.rows) == most:
                        return

    def hear(self, most=None):
        try:
            asyncio.run(self.listen(most))
        except aiohttp.ClientError:
            return False
        return True


def test_who_listens_has_all_rows_and_is_told_of_what_it_has_not(command, tmp_path):
    port, out = free_port(), tmp_path / "out.jsonl"
    params = {"port": port, "web_socket_port": free_port(), "out": out, "rows": ROWS}
    command.start(PLACE, *OPTIONS, **params)
    command.running()
    listener = Listener(port)
    assert listener.hear(most=500)
    command.until(lambda: command.scaled("count", 3))
    assert listener.hear(most=1000)
    command.processes("count/")[0].kill()
    command.until(lambda: command.status().get("restores"))
    command.until(lambda: listener.hear(most=len(listener.rows) + 500))
    assert listener.lost == []
    before = {number for number, _ in listener.rows}
    kill_run(command)
    command.start(PLACE, *OPTIONS, "--resume", "--parallelism", "count=2", **params)
    command.until(listener.hear)
    code, _, err = command.wait()
    assert code == 0, err
    assert listener.over and listener.lost == [None], "ids of the run that was killed are known as that"
    landed = [json.loads(line)["value"] for line in out.read_text().splitlines()]
    assert sorted(number for number, _ in landed) == list(range(ROWS))
    assert {tuple(row) for row in listener.rows} <= {tuple(row) for row in landed}
    since = {number for number, _ in listener.rows} - before
    assert set(range(max(since) - 100, ROWS)) <= since, "the last rows of the run are there"
