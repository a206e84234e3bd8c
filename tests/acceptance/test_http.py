"""From POSTs to a webhook over real sockets: scaled live, killed and resumed, each row counts once."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from pathlib import Path

import from_http
import pytest
from http_feed import feeding
from http_receiver import receiving
from ports import free_port
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
PLACE = f"{Path(from_http.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")
CLIENTS, KEYS, IN_ONE = 4, 5, 5


class Client(threading.Thread):
    """Posts one row list after another, each until it is said to be durable, under one idempotency key."""

    def __init__(self, number, port):
        super().__init__(daemon=True)
        self.number, self.port = number, port
        self.durable, self.again, self.over = 0, 0, threading.Event()
        self.start()

    def run(self):
        while not self.over.is_set():
            begin = self.durable * IN_ONE
            rows = [
                {"key": f"{self.number}-{n % KEYS}", "value": f"{self.number}/{n}"}
                for n in range(begin, begin + IN_ONE)
            ]
            while not self._sent(rows, f"{self.number}-{self.durable}"):
                self.again += 1
                if self.over.wait(0.05):
                    return
            self.durable += 1

    def _sent(self, rows, key):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("POST", "/", json.dumps(rows), {"Idempotency-Key": key})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def test_each_row_counts_once(command, tmp_path):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'esault[http]'")
    turns = iter(range(10**9))
    # one in ten is taken and its answer is lost
    with receiving(answer=lambda got: 200 if next(turns) % 10 else 503) as service:
        params = {"port": free_port(), "url": service.url}
        command.start(PLACE, *OPTIONS, **params)
        command.running()
        clients = [Client(number, params["port"]) for number in range(CLIENTS)]

        def more():
            before = [client.durable for client in clients]
            command.until(lambda: all(now.durable >= old + 2 for now, old in zip(clients, before)))

        more()
        command.until(lambda: command.scaled("count", 3))
        more()
        for victim in ("posts/", "count/"):
            restores = command.status().get("restores", 0)
            command.processes(victim)[0].kill()
            command.until(lambda restores=restores: command.status().get("restores", 0) > restores)
            more()
        kill_run(command)
        command.start(PLACE, *OPTIONS, "--resume", **params)
        command.running()
        more()
        code, _, err = command.stop()
        assert code == 0, err
        for client in clients:
            client.over.set()
        for client in clients:
            client.join(30)

    rows = [json.loads(line)["value"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    values = Counter(row["value"] for row in rows)
    said = {f"{client.number}/{n}" for client in clients for n in range(client.durable * IN_ONE)}
    assert not said - set(values)  # what was called durable is there
    assert max(values.values()) == 1  # and nothing is there twice
    assert len(
        {(row["value"].split("/")[0], int(row["value"].split("/")[1]) % KEYS, row["count"]) for row in rows}
    ) == len(rows)
    assert sum(client.again for client in clients) > 0
    # the webhook has them all; what came again came under the same key
    sent = {}
    for got in service.got:
        sent.setdefault(got.key, []).append(json.dumps(got.body))
    assert all(len(set(bodies)) == 1 for bodies in sent.values())
    assert Counter(bodies[0] for bodies in sent.values()) == Counter(json.dumps(row) for row in rows)


def test_events_and_polled_rows_count_once(command, tmp_path):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'esault[http]'")
    upto = 0

    def answer(asked):
        if asked.get("Accept") != "text/event-stream":
            return 200, [{"n": n} for n in range(int(asked.get("from", 0)), upto)], {}
        begin = int(asked.get("Last-Event-ID", -1)) + 1
        end = min(upto, begin + 7)  # then it hangs up, in the middle of the next
        sent = [f"id: {n}\ndata: {n}\n\n".encode() for n in range(begin, end)]
        return 200, [*sent, b"id: 999999\ndata: 5\n"], {"Content-Type": "text/event-stream"}

    def landed(name):
        path = tmp_path / name
        return [json.loads(line)["value"] for line in path.read_text().splitlines()] if path.exists() else []

    def more(count=10):
        nonlocal upto
        upto += count
        command.until(lambda: all(len(landed(name)) >= upto - 2 for name in ("events.jsonl", "rows.jsonl")))

    with feeding(answer) as feed:
        command.start(f"{Path(from_http.__file__).with_name('from_feeds.py')}:topology", *OPTIONS, url=feed.url)
        command.running()
        more()
        for victim in ("events/", "rows/"):
            restores = command.status().get("restores", 0)
            command.processes(victim)[0].kill()
            command.until(lambda restores=restores: command.status().get("restores", 0) > restores)
            more()
        kill_run(command)
        upto += 5
        place = f"{Path(from_http.__file__).with_name('from_feeds.py')}:topology"
        command.start(place, *OPTIONS, "--resume", url=feed.url)
        command.running()
        more()
        command.until(lambda: all(len(landed(name)) >= upto for name in ("events.jsonl", "rows.jsonl")))
        code, _, err = command.stop()
        assert code == 0, err
    assert landed("events.jsonl") == list(range(upto))
    assert landed("rows.jsonl") == list(range(upto))
