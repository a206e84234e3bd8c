"""A word count whose lines are made as they are read, for runs on one host and on several."""

from __future__ import annotations

import random

from esault import Bolt, EndOfStream, Spout, Topology, by_key, shuffle
from esault.sinks import JsonLines
from esault.sources import Paced

WORDS = [f"w{i}" for i in range(10_000)]


class Sentences(Spout):
    """`n` sentences of ten words, of which 5 000 differ."""

    def __init__(self, n: int) -> None:
        self.next, self.n = 0, n
        order = random.Random(1)
        self.made = [" ".join(order.choices(WORDS, k=10)) for _ in range(5000)]

    def read(self, limit):
        if self.next >= self.n:
            raise EndOfStream
        rows = [(i, self.made[i % 5000]) for i in range(self.next, min(self.n, self.next + limit))]
        self.next += len(rows)
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class Split(Bolt):
    def process(self, key, value):
        for word in value.split():
            self.emit(word, 1)


class Count(Bolt):
    def __init__(self) -> None:
        self.total = 0

    def process(self, key, value):
        self.total += value

    def finish(self):
        self.emit(self.key, self.total)


def topology(n: int, out: str, rate: float = 0.0, p: int = 3) -> Topology:
    t = Topology("bench-hosts")
    spout = Sentences(n)
    lines = t.spout("lines", Paced(spout, rate) if rate else spout)
    split = lines.bolt("split", Split, grouping=shuffle(), parallelism=p)
    split.bolt("count", Count, grouping=by_key(), parallelism=p).sink("out", JsonLines(out, mode="replace"))
    return t
