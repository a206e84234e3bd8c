"""Rows as messages of a real mosquitto: where they land, what comes again, what is refused and what is waited for."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest
from mosquitto_server import Broker, Reader

from esault.errors import SinkError, TopologyError
from esault.sinks import MqttSink
from esault.testing.contract import check_sink
from esault.topology.context import Context
from esault.topology.sink import Row


@pytest.fixture
def topic():
    return f"s-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def reader(broker, topic):
    return Reader(broker, f"{topic}/#")


def sink(broker, topic, **options):
    made = MqttSink(topic, "127.0.0.1", broker.port, **options)
    made.open(Context("out", run="run", lineage="folder"))
    return made


def landed(sink, *rows):
    sink.write([Row(key, value, 0.0, f"id{value}") for key, value in rows])
    handle = sink.prepare(1).result(30)
    sink.commit(1, handle).result(30)
    return handle


def test_it_keeps_the_contract_of_sinks_where_readers_drop_repeats(broker, topic, reader):
    def make(place):
        return MqttSink(lambda key, value: f"{topic}/{place.parent.name}-{place.name}/{key}", "127.0.0.1", broker.port)

    def read(place):
        start, once = f"{topic}/{place.parent.name}-{place.name}/", {}
        for message in reader.all():
            if message.topic.startswith(start):
                name = dict(message.properties.UserProperty)["id"]
                once.setdefault(name, (message.topic.removeprefix(start), json.loads(message.payload)))
        return list(once.values())

    assert check_sink(make, read) >= 7


def test_a_topic_by_a_function_and_what_is_retained(broker, topic, reader):
    made = sink(broker, lambda key, value: f"{topic}/{key}", retain=True)
    landed(made, ("a", 1), ("b", 2), ("a", 3))
    made.close()
    assert reader.rows() == [(f"{topic}/a", 1), (f"{topic}/b", 2), (f"{topic}/a", 3)]
    assert sorted(Reader(broker, f"{topic}/#").rows()) == [(f"{topic}/a", 3), (f"{topic}/b", 2)]


def test_a_commit_again_publishes_nothing_by_one_object_and_the_same_ids_by_another(broker, topic, reader):
    first, second = sink(broker, f"{topic}/x"), sink(broker, f"{topic}/x")
    handle = landed(first, ("a", 1), ("a", 2))
    assert first.commit(1, handle) is None
    second.commit(1, handle).result(30)
    ids = [dict(message.properties.UserProperty)["id"] for message in reader.all()]
    assert ids == ["folder-out-id1", "folder-out-id2"] * 2
    first.close()
    second.close()


def test_thousands_land_in_order_and_a_broker_that_restarts_is_waited_for(broker, topic, caplog):
    made = sink(broker, f"{topic}/x", value_serializer="text")
    landed(made, *(("a", n) for n in range(2000)))
    broker.stop()
    try:
        made.write([Row("a", n, 0.0, f"id{n}") for n in range(1500)])
        done = made.commit(2, made.prepare(2).result(30))
        assert not done.done()
    finally:
        broker.start()
    done.result(30)
    made.close()
    assert caplog.text.count("waiting until it does") == caplog.text.count("answers again") == 1


def test_what_is_missing_or_refused_is_said(broker, topic):
    with pytest.raises(SinkError, match="does not answer"):
        MqttSink("t", "127.0.0.1", 1).check()
    with pytest.raises(SinkError, match="refuses user 'alice'"):
        MqttSink("t", "127.0.0.1", broker.guarded, user="alice", password="guess").check()
    for wrong in ("", "a/+", "a/#", None):
        with pytest.raises(TopologyError, match="topic="):
            MqttSink(wrong)
    made = sink(broker, lambda key, value: key)
    with pytest.raises(SinkError, match="is no topic"):
        made.write([Row("a/#", 1, 0.0, "id")])
    with pytest.raises(SinkError, match="is no topic"):
        MqttSink(lambda key, value: "t\ud800", "127.0.0.1", broker.port).write([Row("k", 1, 0.0, "r")])
    with pytest.raises(SinkError, match="is no topic: return a name of 65,535 bytes at most"):
        made.write([Row("é" * 32_768, 1, 0.0, "id")])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho leaves a socket open there
def test_tls_that_does_not_come_about_is_said(broker):
    with pytest.raises(SinkError, match="does not answer.*does it speak TLS there, with a certificate that is trusted"):
        MqttSink("t", "127.0.0.1", broker.port, tls=True).check()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("max_packet_size", r"a message of 5,000 bytes for '[^']+' is too large: .*max_packet_size"),
        (
            "message_size_limit",
            r"3 connections in a row without taking a message of 5,000 bytes for .*message_size_limit",
        ),
    ],
)
def test_a_message_that_the_broker_never_takes_is_said(setting, said, topic, monkeypatch):
    monkeypatch.setattr("esault.connectors.mqtt.sink._MOST_IN_VAIN", 3)
    with tempfile.TemporaryDirectory(prefix="mosquitto-") as folder:
        Path(folder).chmod(0o755)
        small = Broker(Path(folder))
        small.settings.write_text(small.settings.read_text() + f"{setting} 3000\n")
        small.start()
        try:
            made = sink(small, topic, value_serializer="text")
            landed(made, ("k", "x" * 900))
            with pytest.raises(SinkError, match=said):
                landed(made, ("k", "y" * 5000))
            made.close()
        finally:
            small.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk can be made by root alone")
def test_mosquitto_with_a_full_disk_takes_rows_on_and_has_them_on_the_disk_when_there_is_room():
    small = Path(tempfile.mkdtemp(prefix="mosquitto-"))  # its user may not go through pytest's folders
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        small.rmdir()
        pytest.skip("no small disk can be mounted here")
    full = Broker(small)
    try:
        full.settings.write_text(full.settings.read_text().replace("autosave_on_changes true\n", ""))  # every second
        full.start()
        reader = Reader(full, "rows/#")
        made = sink(full, "rows/x", value_serializer="text")
        landed(made, *(("k", f"{n} {'x' * 1000}") for n in range(500)))

        while "No space left on device" not in (small / "log").read_text():
            time.sleep(0.05)
        assert len(reader.all()) == 500  # from its memory
        subprocess.run(["mount", "-o", "remount,size=10m", str(small)], check=True)
        written = small / "mosquitto.db"
        while not written.exists() or written.stat().st_size < 500_000:
            time.sleep(0.05)
        full.crash()
        full.start()
        assert [int(message.payload.split()[0]) for message in reader.all()] == list(range(500))
        made.close()
    finally:
        full.stop()
        subprocess.run(["umount", str(small)], check=True)
        small.rmdir()
