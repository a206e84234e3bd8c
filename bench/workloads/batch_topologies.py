"""The workloads with user code for whole batches, `process_columns`: one update per key per batch out (M)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bench.workloads.topologies import Counted, Offered
from esault import BatchBolt, Topology, by_key, shuffle

__all__ = ["sums_batch", "words_batch"]


class SplitBatch(BatchBolt):
    """The counts of a batch's words."""

    def process_columns(self, keys, values):
        counts = Counter(" ".join(values).split())
        self.emit_columns(counts.keys(), counts.values())


class EvenBatch(BatchBolt):
    """+1, those that are even, and their sums in the batch."""

    def process_columns(self, keys, values):
        sums: dict[Any, int] = {}
        for key, value in zip(keys, values):
            if value % 2:
                sums[key] = sums.get(key, 0) + value + 1
        self.emit_columns(sums.keys(), sums.values())


class CountBatch(BatchBolt):
    """Adds what came for each key; one update per key per batch."""

    def process_columns(self, keys, values):
        keyed = self.keyed
        totals = []
        for key, value in zip(keys, values):
            keyed[key] = total = keyed.get(key, 0) + value
            totals.append(total)
        self.emit_columns(keys, totals)


class CountedLast(Counted):
    """Also keeps each key's last value, to see that it is right: how many updates there are says nothing."""

    def open(self, context: Any) -> None:
        super().open(context)
        self.final: dict[Any, int] = {}

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time_: float, ids: Any) -> None:
        super().write_columns(keys, values, time_, ids)
        self.final.update(zip(keys, values))


def words_batch(load: str, passes: int, out: str) -> Topology:
    """Workload A: sentences -> counts of a batch -> keyed running count -> sink."""
    t = Topology("bench-words-batch")
    counts = t.spout("lines", Offered(load, passes)).bolt("split", SplitBatch, grouping=shuffle())
    counts.bolt("count", CountBatch, grouping=by_key()).sink("out", CountedLast(out))
    return t


def sums_batch(load: str, passes: int, out: str) -> Topology:
    """Workload B: records -> +1, keep even, sums of a batch -> keyed running sum -> sink."""
    t = Topology("bench-sums-batch")
    sums = t.spout("records", Offered(load, passes)).bolt("even", EvenBatch, grouping=shuffle())
    sums.bolt("sum", CountBatch, grouping=by_key()).sink("out", CountedLast(out))
    return t
