"""Messages of topics to JSON lines, and to another topic."""

from __future__ import annotations

from esault import Topology
from esault.sinks import JsonLines, MqttSink
from esault.sources import MqttSource


def topology(port: int, client: str, readers: int = 1, name: str = "from_mqtt") -> Topology:
    t = Topology(name)
    source = MqttSource("plant/#", "127.0.0.1", int(port), client_id=client)
    rows = t.spout("messages", source, parallelism=int(readers)).map(lambda n: n)
    rows.sink("lines", JsonLines("out.jsonl", mode="append"))
    rows.sink("topic", MqttSink("there", "127.0.0.1", int(port)))
    return t
