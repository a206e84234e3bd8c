"""Messages of streams of RabbitMQ, counted by key, into a file."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import RabbitMQStreamSource


class Count(Bolt):
    """Numbers the messages of a stream."""

    def __init__(self) -> None:
        self.count, self.last = 0, -1

    def process(self, key, number):
        self.count += 1
        self.emit(key, {"number": number, "count": self.count, "in_order": number > self.last})
        self.last = number


def topology(url: str, streams: int, out: str, name: str = "through_streams") -> Topology:
    """Return it; it has no end."""
    t = Topology(name)
    source = RabbitMQStreamSource([f"in-{part}" for part in range(streams)], url)
    counts = t.spout("messages", source, max_parallelism=4).bolt("count", Count, grouping=by_key(), max_parallelism=4)
    counts.sink("out", JsonLines(out, mode="append"))
    return t
