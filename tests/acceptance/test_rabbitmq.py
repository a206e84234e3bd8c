"""From a queue to a queue by a real RabbitMQ: killed, resumed and changed, nothing is missing.

What happens while the server is away: `test_outages.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import from_rabbitmq
import held
import pytest
import rabbitmq_server
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
PLACE = f"{Path(from_rabbitmq.__file__)}:topology"


@pytest.fixture
def server():
    return held.server(rabbitmq_server, "pika")


class Flow:
    """Messages that are sent, and those that have come out."""

    def __init__(self, server, folder):
        self.server, self.lines = server, folder / "out.jsonl"
        self.here, self.there = server.queue(), server.queue()
        self.params = {"url": server.url, "queue": self.here, "there": self.there, "readers": 2}
        self.sent = 0

    def more(self, count=300):
        import pika

        with self.server.channel() as channel:
            channel.tx_select()
            for number in range(self.sent, self.sent + count):
                named = pika.BasicProperties(delivery_mode=2, message_id=f"m{number}")
                channel.basic_publish("", self.here, b"%d" % number, named)
            channel.tx_commit()
        self.sent += count

    def landed(self):
        return (
            [json.loads(line)["value"] for line in self.lines.read_text().splitlines()] if self.lines.exists() else []
        )

    def all_landed(self):
        return len(set(self.landed())) >= self.sent

    def read(self):
        return [(properties.message_id, int(body)) for properties, body in self.server.messages(self.there)]


def test_with_checkpoints_each_message_counts_once(command, server, tmp_path):
    options = ("--checkpoint", "0.3", "--policy", "none")
    flow = Flow(server, tmp_path)
    flow.more()
    flow.params["readers"] = 1  # what one has kept another does not know
    command.start(PLACE, *options, **flow.params)
    command.running()
    for victim in ("messages/", "double/"):
        restores = command.status().get("restores", 0)
        flow.more()
        command.processes(victim)[0].kill()
        command.until(lambda restores=restores: command.status().get("restores", 0) > restores)
        command.until(flow.all_landed)
    command.until(lambda: command.status().get("phase") == "running" and command.scaled("double", 4))
    flow.more()
    kill_run(command)
    flow.more()
    command.start(PLACE, *options, "--resume", **flow.params)
    command.running()
    command.until(flow.all_landed)
    code, _, err = command.stop()
    assert code == 0, err
    assert Counter(flow.landed()) == Counter(range(flow.sent)), "by JsonLines, exactly once"
    read = flow.read()
    assert sorted(dict(read).values()) == list(range(flow.sent)), (
        "readers that drop repeats by message_id see each once"
    )
    assert server.ready(flow.here) == 0


def test_without_checkpoints_nothing_is_missing(command, server, tmp_path):
    flow = Flow(server, tmp_path)
    flow.more()
    command.start(PLACE, "--policy", "none", **flow.params)
    command.running()
    for victim in ("double/", "messages/"):
        known = {process.pid for process in command.processes(victim)}
        flow.more()
        command.processes(victim)[0].kill()
        command.until(lambda known=known, victim=victim: {p.pid for p in command.processes(victim)} - known)
    command.until(flow.all_landed)
    command.until(lambda: server.ready(flow.here) == 0)
    code, _, err = command.stop()
    assert code == 0, err
    assert set(flow.landed()) == set(range(flow.sent))
    assert {value for _, value in flow.read()} == set(range(flow.sent))
