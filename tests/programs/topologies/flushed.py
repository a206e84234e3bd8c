"""`tick` sends on what has gathered, `expire_after` ends keys that are quiet: how it is divided depends on time, the sums do not."""

import random

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


def clicks(size):
    rng = random.Random(28)
    return [(f"page{rng.randrange(60)}", rng.randrange(5)) for _ in range(size)]


class Gather(Bolt):
    def __init__(self):
        self.buffer = []
        self.flushed = 0

    def process(self, key, value):
        self.buffer.append(value)

    def tick(self, now):
        if self.buffer:
            self.flush()

    def finish(self):
        self.flush()

    def flush(self):
        self.flushed += 1
        self.emit(self.key, (len(self.buffer), sum(self.buffer)))
        self.buffer.clear()


class Sum(Bolt):
    def __init__(self):
        self.count = self.total = 0

    def process(self, key, value):
        self.count += value[0]
        self.total += value[1]

    def finish(self):
        self.emit(self.key, [self.count, self.total])


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("flushed")
    rows = t.spout("clicks", Paced(Items(clicks(size)), rate))
    gathered = rows.bolt("gather", Gather, by_key(), tick_every=0.05, expire_after=0.1)
    gathered.bolt("sum", Sum, by_key(), expire_after=0.3).sink("sums", JsonLines(f"{out}/sums.jsonl"))
    return t


def together(sink, rows):
    sums = {}
    for page, (count, total) in rows:
        before = sums.get(page, (0, 0))
        sums[page] = (before[0] + count, before[1] + total)
    return list(sums.items())


def expected(size):
    return {"sums": [(page, [1, value]) for page, value in clicks(size)]}
