"""Entries of streams of Redis, counted by key, into another stream."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.sinks import RedisSink
from esault.sources import RedisSource


class Count(Bolt):
    """Numbers the entries of a key, and says which of them comes behind a later one of its stream."""

    def __init__(self) -> None:
        self.count, self.last = 0, -1

    def process(self, key, value):
        number = int(value["number"])
        self.count += 1
        self.emit(key, {"number": number, "count": self.count, "in_order": int(number > self.last)})
        self.last = number


def topology(url: str, name: str = "through_redis") -> Topology:
    """Return it; it has no end."""
    t = Topology(name)
    entries = t.spout("entries", RedisSource("in:*", url, key="word", every=0.3), max_parallelism=4)
    counts = entries.bolt("count", Count, grouping=by_key(), max_parallelism=4)
    counts.sink("out", RedisSink("out", url, key_field="word", value_field=None))
    return t
