"""Redis, NATS and web services that are away for 30 s while a run reads from them and writes to them."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import depth
import nats_server
import pytest
import redis_server
import through_services
import web_service
from outages import ROWS, Flow, outlast, standing_still
from ports import free_port
from waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(depth.PROFILE != "deep", reason="takes a minute each: make test-deep"),
]


@contextlib.contextmanager
def redis(how: str) -> Iterator[Flow]:
    with redis_server.running() as server, standing_still(server._process.pid) as (stopped, resumed):
        rows = [{"n": n} for n in range(ROWS)]

        def put(some: list[dict[str, int]]) -> None:
            for row in some:
                server.client.xadd("here", row)

        def read() -> list[int]:
            return [json.loads(entry["value"])["n"] for entry in server.entries("there")]

        def back() -> None:
            resumed() if how == "frozen" else server.start()
            put(rows[ROWS // 2 :])

        put(rows[: ROWS // 2])
        said = 1 if how == "frozen" else 2  # the sink waits longer for an answer: a script may take long
        yield Flow({"url": server.url}, stopped if how == "frozen" else server.stop, back, read, said, ends=False)


@contextlib.contextmanager
def nats(how: str) -> Iterator[Flow]:
    with nats_server.running() as server, standing_still(server._process.pid) as (stopped, resumed):
        rows = [("n", json.dumps({"n": n}).encode()) for n in range(ROWS)]
        here, there = server.stream(*rows[: ROWS // 2]), server.stream()

        def read() -> list[int]:
            return [json.loads(message.data)["n"] for message in server.messages(there)]

        def back() -> None:
            resumed() if how == "frozen" else server.start()
            server.send(here, rows[ROWS // 2 :])

        params = {"url": server.url, "here": here, "there": there}
        yield Flow(params, stopped if how == "frozen" else server.stop, back, read, ends=False)


@contextlib.contextmanager
def web(path: str, how: str) -> Iterator[Flow]:
    """A service whose `path` gives rows, and which takes them back; of a WebSocket nothing is on its way when it is killed."""
    port = free_port()
    with (
        tempfile.TemporaryDirectory(prefix="served-", ignore_cleanup_errors=True) as name,
        contextlib.ExitStack() as end,
    ):
        folder, processes = Path(name), []

        def start() -> None:
            command = [sys.executable, web_service.__file__, str(port), name, str(ROWS)]
            processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
            until(answers)

        def answers() -> bool:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/rows", timeout=5).close()
            except OSError:
                assert processes[-1].poll() is None
                return False
            return True

        def away() -> None:
            (folder / "still").touch()
            time.sleep(0.3)
            processes[-1].send_signal(signal.SIGSTOP if how == "frozen" else signal.SIGKILL)
            if how != "frozen":
                processes[-1].wait()

        def back() -> None:
            (folder / "still").unlink()
            processes[-1].send_signal(signal.SIGCONT) if how == "frozen" else start()

        def read() -> list[int]:
            taken = (folder / "taken.jsonl").read_text().splitlines()
            return [json.loads(line)["row"]["n"] for line in taken]

        start()
        end.callback(lambda: [(process.kill(), process.wait()) for process in processes])
        said = 0 if how == "frozen" else 2  # nobody waits for an answer for less than 30 s
        yield Flow({"port": port}, away, back, read, said, ends=path == "events")


PLACE = str(Path(through_services.__file__))
SERVERS = {
    **{f"redis, {how}": ("redis", lambda how=how: redis(how), "redis") for how in ("stopped", "frozen")},
    **{f"nats, {how}": ("nats", lambda how=how: nats(how), "nats") for how in ("stopped", "frozen")},
    **{
        f"http {path}, {how}": (path, lambda path=path, how=how: web(path, how), "aiohttp")
        for path, how in (
            *(("events", "stopped"), ("events", "frozen"), ("rows", "stopped"), ("rows", "frozen")),
            *(("feed", "stopped"), ("feed", "frozen")),
        )
    },
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_is_away_for_thirty_seconds_loses_and_doubles_nothing(command, tmp_path, name):
    function, served, module = SERVERS[name]
    pytest.importorskip(module)
    outlast(command, tmp_path, f"{PLACE}:{function}", served())
