"""Rows from a server and back to it, numbered by key, and to JSON lines: at a pace at which they outlast an outage of 30 s."""

from __future__ import annotations

import time
from typing import Any

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines, MqttSink, PostgresSink, RabbitMQSink, RabbitMQStreamSink
from esault.sources import JsonFiles, MqttSource, Paced, PostgresChanges, RabbitMQSource, RabbitMQStreamSource

KEYS = 10
#: rows of a second
RATE = 150.0


class Count(Bolt):
    """Numbers the rows of a key."""

    def __init__(self) -> None:
        self.count = 0

    def process(self, key, value):
        self.count += 1
        self.emit(key, {"n": value["n"], "count": self.count})


class Slowly(Bolt):
    """Takes a while for each row: what is read in splits has no pace."""

    def process(self, key, value):
        time.sleep(1 / RATE)
        self.emit(key, value)


def counted(name: str, source: Any, sink: Any) -> Topology:
    """Return the topology that numbers the rows of a source, each with a number "n", for a sink and the file."""
    t = Topology(name)
    numbers = t.spout("rows", source).map(lambda value: {"n": int(value["n"])})  # Redis has texts
    rows = numbers.key_by(lambda value: value["n"] % KEYS)
    if not isinstance(source, Paced):
        rows = rows.bolt("slowly", Slowly, grouping=by_key())
    counts = rows.bolt("count", Count, grouping=by_key(), parallelism=2)
    counts.sink("there", sink)
    counts.sink("lines", JsonLines("out.jsonl"))
    return t


def postgres(dsn: str, until: str | None = None, name: str = "outage") -> Topology:
    source = PostgresChanges(dsn, "here", slot="outage", until=until)
    return counted(name, Paced(source, rate=RATE), PostgresSink(dsn, "there", {"key": int, "n": int, "count": int}))


def queue(url: str, here: str, there: str, name: str = "outage") -> Topology:
    source = RabbitMQSource(here, url, unique_ids=True, until="empty")
    return counted(name, Paced(source, rate=RATE), RabbitMQSink(there, url))


def stream(url: str, here: str, there: str, streams: str, name: str = "outage") -> Topology:
    """Return it; it has no end."""
    source = RabbitMQStreamSource(here, url)
    return counted(name, source, RabbitMQStreamSink(there, streams))


def mqtt(port: int, name: str = "outage") -> Topology:
    """Return it; it has no end."""
    source = MqttSource("here/#", "127.0.0.1", port, client_id=name)
    return counted(name, Paced(source, rate=RATE), MqttSink("there", "127.0.0.1", port))


def objects(endpoint: str, name: str = "outage") -> Topology:
    options = {"endpoint_url": endpoint}
    source = JsonFiles("s3://bucket/here", key="n", storage_options=options)
    return counted(name, Paced(source, rate=RATE), JsonLines("s3://bucket/there", storage_options=options))
