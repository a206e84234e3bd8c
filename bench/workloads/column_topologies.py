"""Batches instead of tuples: workload A by partial counts, and keyed sums of numbers, as rows and as columns.

Which of the two, and of which kind columns are, is `kind`. Both put out few rows: rates are of what comes in.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from bench.workloads.loads import SEED
from bench.workloads.topologies import Counted, Offered
from esault import BatchBolt, Columns, EndOfStream, Spout, Topology, by_key, shuffle

__all__ = ["numbers", "partial"]

#: numbers that differ; they are offered again and again
DISTINCT = 1 << 18


class SplitRows(BatchBolt):
    """Each word of a batch once."""

    def process_batch(self, rows):
        words: Counter[str] = Counter()
        for _, line in rows:
            words.update(line.split())
        self.emit_batch(list(words.items()))


class CountRows(BatchBolt):
    def process_batch(self, rows):
        totals = []
        for word, n in rows:
            self.keyed[word] = total = self.keyed.get(word, 0) + n
            totals.append((word, total))
        self.emit_batch(totals)


class SplitColumns(BatchBolt):
    def process_columns(self, keys, values):
        words = Counter(" ".join(values).split())
        self.emit_columns(words.keys(), words.values())


class CountColumns(BatchBolt):
    def process_columns(self, keys, values):
        totals = []
        for word, n in zip(keys, values):
            self.keyed[word] = total = self.keyed.get(word, 0) + n
            totals.append(total)
        self.emit_columns(keys, totals)


def partial(load: str, passes: int, out: str, kind: str = "columns", p: int = 1) -> Topology:
    """Workload A, where a word travels once for each batch of sentences (M: one update for each such word)."""
    split, count = (SplitRows, CountRows) if kind == "rows" else (SplitColumns, CountColumns)
    t = Topology("bench-partial")
    lines = t.spout("lines", Offered(load, passes))
    words = lines.bolt("split", split, grouping=shuffle())
    words.bolt("count", count, grouping=by_key(), parallelism=p, max_parallelism=p).sink("out", Counted(out))
    return t


class Numbers(Spout):
    """(int key, float value), as pairs or as arrays."""

    def __init__(self, keys: int, passes: int, kind: str) -> None:
        self.keys, self.n, self.kind, self.next = keys, passes * DISTINCT, kind, 0

    def open(self, context: Any) -> None:
        order = np.random.default_rng(SEED)
        keys, values = order.integers(0, self.keys, DISTINCT), order.random(DISTINCT)
        if self.kind == "rows":
            self.rows: Any = list(zip(keys.tolist(), values.tolist()))
        elif self.kind == "numpy":
            self.rows = keys, values
        else:
            import pyarrow as pa

            self.rows = pa.array(keys), pa.array(values)

    def read(self, limit):
        if self.next >= self.n:
            raise EndOfStream
        start = self.next % DISTINCT
        part = slice(start, min(start + limit, DISTINCT))
        self.next += part.stop - part.start
        return self.rows[part] if self.kind == "rows" else Columns(self.rows[0][part], self.rows[1][part])


class SumRows(BatchBolt):
    def process_batch(self, rows):
        for key, value in rows:
            self.keyed[key] = self.keyed.get(key, 0.0) + value
        self.emit_batch([(0, len(rows))])


class SumColumns(BatchBolt):
    """One addition in Python for each key that differs in a batch."""

    def process_columns(self, keys, values):
        different, places = np.unique(np.asarray(keys), return_inverse=True)
        sums = np.bincount(places, weights=np.asarray(values))
        get = self.keyed.get
        self.keyed.update([(key, get(key, 0.0) + total) for key, total in zip(different.tolist(), sums.tolist())])
        self.emit_columns([0], [len(values)])


def numbers(load: str, passes: int, out: str, kind: str = "numpy", p: int = 1) -> Topology:
    """Sums of `passes` times 262,144 numbers over as many keys as `load` says; one row out for each batch."""
    t = Topology("bench-numbers")
    bolt = SumRows if kind == "rows" else SumColumns
    given = t.spout("numbers", Numbers(int(load), passes, kind))
    given.bolt("sum", bolt, grouping=by_key(), parallelism=p, max_parallelism=p).sink("out", Counted(out))
    return t
