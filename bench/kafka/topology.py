"""Topologies that read and write topics."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from esault import Bolt, EndOfStream, Sink, Spout, Topology, by_key
from esault.sinks import KafkaSink
from esault.sources import KafkaSource

__all__ = ["read", "topology", "write"]


class Numbered(Bolt):
    """Numbers the messages of a key, and says which of them comes behind a later one."""

    def __init__(self) -> None:
        self.count, self.last = 0, -1

    def process(self, key: str, value: int) -> None:
        """Emit the message with its number."""
        self.count += 1
        self.emit(key, {"value": value, "count": self.count, "in_order": value > self.last})
        self.last = value


def topology(servers: str, here: str, there: str, name: str = "kafka_faults") -> Topology:
    """From topic to topic, in transactions; what faults are done to."""
    t = Topology(name)
    messages = t.spout("messages", KafkaSource(here, servers, every=1.0), max_parallelism=4)
    counted = messages.bolt("count", Numbered, grouping=by_key(), parallelism=2)
    counted.sink("topic", KafkaSink(there, servers, guarantee="exactly-once"))
    return t


class Counted(Sink):
    """Counts rows, and says when the first and the last of them came."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def open(self, context: Any) -> None:
        """Begin at nothing."""
        self.rows, self.first, self.last = 0, 0.0, 0.0

    def write(self, rows: Sequence[Any]) -> None:
        """Count them."""
        self.last = time.time()
        self.first = self.first or self.last
        self.rows += len(rows)

    def close(self) -> None:
        """Write the counts down."""
        if self.rows:
            self.path.with_suffix(f".{os.getpid()}").write_text(f"{self.rows} {self.first} {self.last}")


def read(servers: str, here: str, out: str, values: str = "json", parallelism: int = 1) -> Topology:
    """All of a topic, counted: the way in."""
    t = Topology("kafka_in")
    source = KafkaSource(here, servers, until="end", value_deserializer=values, key_deserializer="bytes")
    t.spout("messages", source, parallelism=parallelism, max_parallelism=4).sink("rows", Counted(out))
    return t


class Messages(Spout):
    """So many rows of a hundred bytes, as fast as they are taken."""

    def __init__(self, count: int) -> None:
        self.count, self.next = count, 0

    def read(self, limit: int) -> Sequence[tuple[str, str]]:
        """Return the next."""
        if self.next >= self.count:
            raise EndOfStream
        first, self.next = self.next, min(self.count, self.next + limit)
        return [(f"k{n % 10_000}", f"{n:0100d}") for n in range(first, self.next)]

    def position(self) -> int:
        """Return the number of the next."""
        return self.next

    def seek(self, position: int) -> None:
        """Go there."""
        self.next = position


def write(servers: str, there: str, count: int, guarantee: str = "at-least-once") -> Topology:
    """Rows from memory to a topic: the way out."""
    t = Topology("kafka_out")
    t.spout("rows", Messages(int(count))).sink(
        "topic", KafkaSink(there, servers, guarantee=guarantee, value_serializer="text")
    )
    return t
