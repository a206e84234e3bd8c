"""Messages of a topic, counted by key, to another topic and to JSON lines."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines, KafkaSink
from esault.sources import KafkaSource


class Count(Bolt):
    """Numbers the messages of a key, and says which of them comes behind a later one."""

    def __init__(self):
        self.count, self.last = 0, -1

    def process(self, key, value):
        self.count += 1
        self.emit(key, {"value": value, "count": self.count, "in_order": value > self.last})
        self.last = value


def topology(servers: str, topic: str, there: str, name: str = "from_kafka") -> Topology:
    t = Topology(name)
    messages = t.spout("messages", KafkaSource(topic, servers, every=0.3), max_parallelism=8)
    counts = messages.bolt("count", Count, grouping=by_key())
    counts.sink("topic", KafkaSink(there, servers, guarantee="exactly-once"))
    counts.sink("lines", JsonLines("out.jsonl"))
    return t
