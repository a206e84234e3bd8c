"""From a topic to a topic by a real broker: scaled live, killed and resumed, each message counts once."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from pathlib import Path

import depth
import from_kafka
import held
import kafka_broker
import pytest
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
PLACE = f"{Path(from_kafka.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.3", "--policy", "none")
KEYS = 20


@pytest.fixture
def broker():
    return held.server(kafka_broker, "confluent_kafka")


def test_each_message_counts_once(command, broker, tmp_path):
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewPartitions

    here, there, others = broker.topic(4), broker.topic(2), set(broker.open_transactions())
    sent = 0

    def more(count=600, **options):
        nonlocal sent
        producer = Producer({"bootstrap.servers": broker.servers})  # a new one knows all partitions
        for number in range(sent, sent + count):
            producer.produce(here, str(number).encode(), key=f"k{number % KEYS}".encode(), **options)
        assert producer.flush(60) == 0
        sent += count

    def landed():
        path = tmp_path / "out.jsonl"
        return [json.loads(line)["value"] for line in path.read_text().splitlines()] if path.exists() else []

    def all_landed():
        return len(landed()) >= sent

    params = {"servers": broker.servers, "topic": here, "there": there}
    more()
    command.start(PLACE, *OPTIONS, **params)
    command.running()
    command.until(lambda: command.scaled("messages", 3))
    more()
    command.until(all_landed)
    more()
    command.processes("messages/")[0].kill()
    command.until(lambda: command.status().get("restores", 0) and command.status().get("phase") == "running")
    more()
    command.until(lambda: command.scaled("messages", 1))
    command.until(all_landed)
    more()
    kill_run(command)
    more()
    admin = AdminClient({"bootstrap.servers": broker.servers})
    command.start(PLACE, *OPTIONS, "--resume", "--parallelism", "messages=2", **params)
    command.running()
    command.until(all_landed)
    admin.create_partitions([NewPartitions(here, 5)])[here].result(30)
    more(200, partition=4)
    command.until(all_landed)
    code, _, err = command.stop()
    assert code == 0, err

    rows = landed()
    assert Counter(row["value"] for row in rows) == Counter(range(sent))
    assert sum(not row["in_order"] for row in rows) == 0
    counts = Counter(row["value"] % KEYS for row in rows)
    assert max(row["count"] for row in rows) == max(counts.values())
    read = sorted(json.loads(message.value())["value"] for message in broker.messages(there))
    assert read == list(range(sent)), "what consumers see that read what is committed"
    assert set(broker.open_transactions()) <= others


@pytest.mark.skipif(depth.PROFILE != "deep", reason="takes 40 seconds: make test-deep")
def test_a_broker_that_is_away_for_thirty_seconds_loses_and_doubles_nothing(command, broker, tmp_path):
    from confluent_kafka import Producer

    here, there, others = broker.topic(4), broker.topic(2), set(broker.open_transactions())

    def send(first, last):
        producer = Producer({"bootstrap.servers": broker.servers})
        for number in range(first, last):
            producer.produce(here, str(number).encode(), key=f"k{number % KEYS}".encode())
        assert producer.flush(60) == 0

    def landed():
        path = tmp_path / "out.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    send(0, 2000)
    command.start(PLACE, *OPTIONS, servers=broker.servers, topic=here, there=there)
    command.until(landed)
    send(2000, 4000)
    broker.stop(signal.SIGKILL)
    time.sleep(30)
    assert command.status().get("phase") == "running"
    broker.start()
    send(4000, 6000)
    command.until(lambda: len(landed()) >= 6000)
    code, _, err = command.stop()
    assert code == 0, err
    assert 1 <= err.count("waiting until one does") <= 3, "once by the source's process, the sink's, and the driver"
    assert sorted(row["value"]["value"] for row in landed()) == list(range(6000))
    assert sorted(json.loads(message.value())["value"] for message in broker.messages(there)) == list(range(6000))
    assert set(broker.open_transactions()) <= others
