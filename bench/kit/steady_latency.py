"""Latencies at sinks, told apart by when a tuple was due: so that what an engine takes to warm up can be left out."""

from __future__ import annotations

import json
import math
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.workloads.topologies import Counted

__all__ = ["BIN", "TimedSink", "milliseconds", "percentiles", "rows_of", "since"]

#: seconds in which tuples are due together
BIN = 0.1
#: a latency is known within this share of it
WITHIN = math.log(1.05)
#: seconds; what is shorter counts as this
LEAST = 1e-5

#: (number of the bin that a tuple was due in, number of its latency) -> rows
Counts = Counter[tuple[int, int]]


class TimedSink(Counted):
    """Counts rows as `Counted` does, and how long each took from when its tuple was due; says so in a file `path`.latencies.* of its own."""

    def open(self, context: Any) -> None:
        """None came yet."""
        super().open(context)
        self.counts: Counts = Counter()

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time_: float, ids: Any) -> None:
        """Rows of tuples that were due at `time_`, seconds since the epoch."""
        super().write_columns(keys, values, time_, ids)
        took = max(LEAST, self.last - time_)
        self.counts[int(time_ / BIN), round(math.log(took) / WITHIN)] += len(keys)

    def close(self) -> None:
        """Say what came."""
        super().close()
        rows = [[*place, count] for place, count in self.counts.items()]
        Path(f"{self.path}.latencies.{uuid.uuid4().hex}").write_text(json.dumps(rows))


def since(out: Path, due: float) -> Counter[int]:
    """Rows by the number of their latency, of all sinks that have `out` as their path: those due at `due` or later."""
    found: Counter[int] = Counter()
    for at, latency, count in rows_of(out):
        if at * BIN >= due:
            found[latency] += count
    return found


def rows_of(out: Path) -> list[tuple[int, int, int]]:
    """(number of the bin that they were due in, of their latency, how many) of all sinks that have `out` as their path."""
    files = out.parent.glob(f"{out.name}.latencies.*")
    return [(at, latency, count) for file in files for at, latency, count in json.loads(file.read_text())]


def milliseconds(latency: int) -> float:
    """The latency of this number, within 5 %."""
    return 1000 * math.exp(latency * WITHIN)


def percentiles(latencies: Counter[int], shares: Iterable[float]) -> list[float | None]:
    """Milliseconds below which such shares of the rows are, within 5 %; None where there are no rows."""
    total, ordered = latencies.total(), sorted(latencies)
    found: list[float | None] = []
    for share in shares:
        left, place = share * total, 0
        while total and (left := left - latencies[ordered[place]]) > 0 and place < len(ordered) - 1:
            place += 1
        found.append(milliseconds(ordered[place]) if total else None)
    return found
