"""What ran when the checkpoint beside it was written, by eSault 0.1: state whose containers lost their types on the way."""

import time
from collections import Counter

from esault import BatchBolt, Bolt, EndOfStream, Spout, Topology, by_key, single
from esault.sinks import JsonLines
from esault.windows import TumblingWindow

N = 4000


class Numbers(Spout):
    def __init__(self, rate):
        self.next, self.rate = 0, rate

    def read(self, limit):
        if self.next == N:
            raise EndOfStream
        limit = min(limit, 50)
        if self.rate:
            time.sleep(limit / self.rate)
        rows = [(f"k{i % 9}", i) for i in range(self.next, min(N, self.next + limit))]
        self.next += len(rows)
        return rows

    def position(self):
        return [self.next]

    def seek(self, position):
        (self.next,) = position


class Tally(Bolt):
    def __init__(self):
        self.total = 0
        self.seen = []
        self.by_rest = Counter()

    def process(self, key, value):
        self.total += value
        # 0.1 would fail at once on what had come back: it is what users had to write then
        self.seen = [*self.seen, value][-5:]
        self.by_rest = {**self.by_rest, value % 3: self.by_rest.get(value % 3, 0) + 1}

    def finish(self):
        self.emit(self.key, [self.total, list(self.seen), sorted(self.by_rest.items())])


class One(Bolt):
    def __init__(self):
        self.most = {}

    def process(self, key, value):
        self.most[key] = max(value, self.most.get(key, 0))

    def finish(self):
        self.emit("most", sorted(self.most.items()))


class Batches(BatchBolt):
    def process_batch(self, rows):
        for key, value in rows:
            self.keyed[key] = self.keyed.get(key, 0) + value

    def finish(self):
        self.emit_batch(list(self.keyed.items()))


class InWindow(Bolt):
    def __init__(self):
        self.items = []

    def process(self, key, value):
        self.items = [*self.items, value]

    def finish(self):
        self.emit(self.key, [self.window.start, len(self.items), sum(self.items)])


def topology(rate: float = 2000.0) -> Topology:
    t = Topology("kept")
    numbers = t.spout("numbers", Numbers(rate), time=float)
    numbers.bolt("tally", Tally, grouping=by_key(), parallelism=2).sink("tallies", JsonLines("tallies.jsonl"))
    numbers.bolt("one", One, grouping=single()).sink("ones", JsonLines("ones.jsonl"))
    numbers.bolt("batches", Batches, grouping=by_key()).sink("sums", JsonLines("sums.jsonl"))
    numbers.window("windows", InWindow, TumblingWindow(900)).sink("windows-out", JsonLines("windows.jsonl"))
    return t
