"""Messages of a stream of NATS, counted by key, into another stream."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.sinks import NatsSink
from esault.sources import NatsSource


class Count(Bolt):
    """Numbers the messages of a key, and says which of them comes behind a later one of its subject."""

    def __init__(self) -> None:
        self.count, self.last = 0, -1

    def process(self, key, number):
        self.count += 1
        self.emit(key, {"number": number, "count": self.count, "in_order": number > self.last})
        self.last = number


def topology(url: str, subjects: int, name: str = "through_nats") -> Topology:
    """Return it; it has no end."""
    t = Topology(name)
    source = NatsSource("IN", url, subjects=[f"IN.{part}" for part in range(subjects)], key="Word")
    messages = t.spout("messages", source, max_parallelism=4)
    counts = messages.bolt("count", Count, grouping=by_key(), max_parallelism=4)
    counts.sink("out", NatsSink("OUT", lambda key, value: f"OUT.{key}", url))
    return t
