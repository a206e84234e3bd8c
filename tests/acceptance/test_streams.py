"""From streams of RabbitMQ to a file: scaled live, killed, the run killed and resumed; each message counts once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import held
import pytest
import rabbitmq_server
import through_streams
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
PLACE = f"{Path(through_streams.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")
STREAMS = 4


@pytest.fixture
def server():
    return held.server(rabbitmq_server, "pika")


def test_each_message_counts_once(command, server, tmp_path):
    number = 0
    out = tmp_path / "out.jsonl"
    for part in range(STREAMS):
        server.stream(name=f"in-{part}")

    def more():
        nonlocal number
        for part in range(STREAMS):
            server.stream(*(b"%d" % n for n in range(number, number + 50)), name=f"in-{part}")
            number += 50

    def landed():
        return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []

    more()
    options = {"url": server.url, "streams": STREAMS, "out": str(out)}
    command.start(PLACE, *OPTIONS, **options)
    command.running()
    command.until(lambda: command.scaled("messages", 3))
    command.until(lambda: command.scaled("count", 3))
    more()
    command.processes("messages/")[0].kill()
    command.until(lambda: command.status().get("restores") == 1 and command.status().get("phase") == "running")
    more()
    command.processes("count/")[0].kill()
    command.until(lambda: command.status().get("restores") == 2 and command.status().get("phase") == "running")
    more()
    command.until(lambda: len(landed()) >= number)
    command.until(lambda: command.scaled("messages", 1))
    more()
    kill_run(command)
    more()
    command.start(PLACE, *OPTIONS, "--resume", "--parallelism", "messages=2", **options)
    command.running()
    more()
    command.until(lambda: len(landed()) >= number)
    code, _, err = command.stop()
    assert code == 0, err
    found = landed()
    assert Counter(row["value"]["number"] for row in found) == Counter(range(number))
    assert all(row["value"]["in_order"] for row in found)
