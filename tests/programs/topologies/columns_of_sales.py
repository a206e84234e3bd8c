"""NumPy columns from a spout, Arrow record batches between, plain totals in the state of a BatchBolt."""

import numpy as np
import pyarrow as pa

from esault import BatchBolt, Columns, EndOfStream, Spout, Topology, by_key, shuffle
from esault.sinks import JsonLines
from esault.sources import Paced


class Sales(Spout):
    def __init__(self, n):
        self.next, self.n = 0, n

    def read(self, limit):
        if self.next >= self.n:
            raise EndOfStream
        numbers = np.arange(self.next, min(self.n, self.next + limit))
        self.next += len(numbers)
        return Columns(numbers % 23, (numbers * 7 % 31) * 0.25)

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class Price(BatchBolt):
    """Arrays in, an Arrow table out."""

    def process_columns(self, keys, values):
        cents = (np.asarray(values) * 100).astype(np.int64)
        self.emit_columns(pa.array(keys), pa.record_batch({"cents": pa.array(cents), "large": pa.array(cents > 400)}))


class Total(BatchBolt):
    def process_columns(self, keys, values):
        for key, cents, large in zip(keys.to_pylist(), values["cents"].to_pylist(), values["large"].to_pylist()):
            total = self.keyed.setdefault(key, {"cents": 0, "large": set()})
            total["cents"] += cents
            if large:
                total["large"].add(cents)

    def finish(self):
        self.emit_batch([(key, [total["cents"], sorted(total["large"])]) for key, total in self.keyed.items()])


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("columns-of-sales")
    priced = t.spout("sales", Paced(Sales(size), rate)).bolt("price", Price, shuffle())
    priced.bolt("total", Total, by_key()).sink("totals", JsonLines(f"{out}/totals.jsonl"))
    return t


def expected(size):
    totals = {}
    for i in range(size):
        cents = i * 7 % 31 * 25
        total = totals.setdefault(i % 23, [0, set()])
        total[0] += cents
        if cents > 400:
            total[1].add(cents)
    return {"totals": [(key, [cents, sorted(large)]) for key, (cents, large) in totals.items()]}
