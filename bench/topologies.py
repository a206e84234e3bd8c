"""The workloads as topologies. User code per word in `process`; one update per record out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.loads import records, sentences
from esault import Bolt, EndOfStream, Sink, Spout, Topology, by_key, shuffle
from esault.sinks import SparkTable
from esault.sources import Paced


class Load(Spout):
    """Rows that are made when the spout opens, before anything is timed; it can go on from a position."""

    def __init__(self, make: Callable[[], list[tuple[Any, Any]]]) -> None:
        self.make = make
        self.next = 0

    def open(self, context: Any) -> None:
        self.rows = self.make()

    def read(self, limit: int) -> list[tuple[Any, Any]]:
        if self.next >= len(self.rows):
            raise EndOfStream
        rows = self.rows[self.next : self.next + limit]
        self.next += len(rows)
        return rows

    def position(self) -> int:
        return self.next

    def seek(self, position: int) -> None:
        self.next = position


class Split(Bolt):
    def process(self, key, value):
        for word in value.split():
            self.emit(word, 1)


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


class Counted(Sink):
    """Counts rows, and says when the first and the last came: to `path`, a line a process."""

    def __init__(self, path: str) -> None:
        self.path = path

    def open(self, context: Any) -> None:
        self.rows, self.first, self.last = 0, 0.0, 0.0

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time_: float, ids: Any) -> None:
        self.last = time.time()
        if not self.rows:
            self.first = self.last
        self.rows += len(keys)

    def close(self) -> None:
        with Path(self.path).open("a") as out:
            out.write(json.dumps({"rows": self.rows, "first": self.first, "last": self.last}) + "\n")


def words(n: int, out: str, sink: str = "counted", p: int = 1) -> Topology:
    """Workload A: `n` sentences -> split -> keyed running count -> sink ("counted" or "table")."""
    t = Topology("bench-words")
    lines = t.spout("lines", Load(lambda: [(None, s) for s in sentences(n)]))
    counts = lines.bolt("split", Split, grouping=shuffle()).bolt("count", Count, grouping=by_key(), parallelism=p)
    counts.sink("out", Counted(out) if sink == "counted" else SparkTable(out, columns={"word": str, "total": int}))
    return t


def sums(n: int, out: str) -> Topology:
    """Workload B: `n` records -> +1 -> keep even -> keyed running sum over 1 000 keys -> sink."""
    t = Topology("bench-sums")
    numbers = t.spout("records", Load(lambda: records(n)))
    even = numbers.map(lambda value: value + 1).filter(lambda value: value % 2 == 0)
    even.bolt("sum", Count, grouping=by_key()).sink("out", Counted(out))
    return t


def paced(n: int, out: str, rate: float = 10_000.0) -> Topology:
    """Workload C: A at `rate` sentences a second, open loop."""
    t = Topology("bench-paced")
    lines = t.spout("lines", Paced(Load(lambda: [(None, s) for s in sentences(n)]), rate))
    counts = lines.bolt("split", Split, grouping=shuffle()).bolt("count", Count, grouping=by_key())
    counts.sink("out", Counted(out))
    return t
