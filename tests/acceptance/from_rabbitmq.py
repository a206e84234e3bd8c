"""Messages of a queue, to another queue and to JSON lines."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines, RabbitMQSink
from esault.sources import RabbitMQSource


class Double(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def topology(url: str, queue: str, there: str, readers: int, name: str = "from_rabbitmq") -> Topology:
    t = Topology(name)
    one = int(readers) == 1
    source = RabbitMQSource(queue, url, key=lambda value, properties: value % 7, unique_ids=one)
    rows = t.spout("messages", source, parallelism=int(readers)).bolt(
        "double", Double, grouping=by_key(), parallelism=2
    )
    rows.sink("queue", RabbitMQSink(there, url))
    rows.sink("lines", JsonLines("out.jsonl"))
    return t
