"""The workloads as topologies. User code per word in `process`; one update per record out."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.workloads.loads import read
from esault import Bolt, Sink, Topology, by_key, shuffle
from esault.sinks import SparkTable
from esault.sources import Items, Paced


class Offered(Items):
    """A load's rows, in memory before the first read: what is measured is not the reading of a file."""

    def __init__(self, load: str, passes: int) -> None:
        super().__init__(lambda: read(load), repeat=passes)
        self.load = load

    def open(self, context: Any) -> None:
        super().open(context)
        read(self.load)


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


def _seen(path: str, rows: int, first: float, last: float, final: dict[Any, int] | None = None) -> None:
    """A line a process: what a sink saw and when, and what each key has in the end."""
    with Path(path).open("a") as out:
        out.write(json.dumps({"rows": rows, "first": first, "last": last, "final": final}) + "\n")


class Counted(Sink):
    """Counts rows, and says in `path` when the first and the last came."""

    #: each key's last value; kept where rows are few, by bench/workloads/batch_topologies.py
    final: dict[Any, int] | None = None

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
        _seen(self.path, self.rows, self.first, self.last, self.final)


class CountedTable(SparkTable):
    """A table that also counts: from the first row written to the end of the last commit."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}.table", columns={"word": str, "total": int})
        self.counted = path
        self.rows, self.first, self.last = 0, 0.0, 0.0

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time_: float, ids: Any) -> None:
        if not self.rows:
            self.first = time.time()
        self.rows += len(keys)
        super().write_columns(keys, values, time_, ids)

    def commit(self, epoch: int, handle: Any) -> None:
        super().commit(epoch, handle)
        self.last = time.time()

    def close(self) -> None:
        super().close()
        _seen(self.counted, self.rows, self.first, self.last)


class Named(Counted):
    """The same, and it wants row ids."""

    wants_id = True


def _sink(kind: str, out: str) -> Sink:
    return {"counted": Counted, "named": Named, "table": CountedTable}[kind](out)


def words(load: str, passes: int, out: str, sink: str = "counted", p: int = 1) -> Topology:
    """Workload A: sentences -> split -> keyed running count -> sink ("counted"; "named", with row ids; or "table")."""
    t = Topology("bench-words")
    lines = t.spout("lines", Offered(load, passes))
    counts = lines.bolt("split", Split, grouping=shuffle()).bolt("count", Count, grouping=by_key(), parallelism=p)
    counts.sink("out", _sink(sink, out))
    return t


def sums(load: str, passes: int, out: str, sink: str = "counted") -> Topology:
    """Workload B: records -> +1 -> keep even -> keyed running sum over 1 000 keys -> sink."""
    t = Topology("bench-sums")
    numbers = t.spout("records", Offered(load, passes))
    even = numbers.map(lambda value: value + 1).filter(lambda value: value % 2 == 0)
    even.bolt("sum", Count, grouping=by_key()).sink("out", _sink(sink, out))
    return t


def paced(load: str, passes: int, out: str, sink: str = "counted", rate: float = 10_000.0) -> Topology:
    """Workload C: A at `rate` sentences a second, open loop."""
    t = Topology("bench-paced")
    lines = t.spout("lines", Paced(Offered(load, passes), rate))
    counts = lines.bolt("split", Split, grouping=shuffle()).bolt("count", Count, grouping=by_key())
    counts.sink("out", _sink(sink, out))
    return t
