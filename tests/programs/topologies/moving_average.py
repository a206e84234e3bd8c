"""Sliding windows: each reading is in three of them; Fractions keep the averages exact."""

import random
from fractions import Fraction

from esault import Bolt, Topology
from esault.sinks import JsonLines
from esault.sources import Items, Paced
from esault.windows import SlidingWindow


def readings(size):
    rng = random.Random(19)
    return [(("room", rng.randrange(6)), (1000.0 + i * 0.5, rng.randrange(50))) for i in range(size)]


class Average(Bolt):
    def __init__(self):
        self.sum = Fraction(0)
        self.n = 0
        self.extremes = (None, None)

    def process(self, key, value):
        _, degrees = value
        low, high = self.extremes
        self.extremes = (degrees if low is None else min(low, degrees), degrees if high is None else max(high, degrees))
        self.sum += Fraction(degrees, 3)
        self.n += 1

    def finish(self):
        average = self.sum / self.n
        self.emit(self.key, [self.window.start, (average.numerator, average.denominator), self.extremes])


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("moving-average")
    rows = t.spout("readings", Paced(Items(readings(size)), rate))
    averages = rows.window(
        "average", Average, SlidingWindow(30, 10), time=lambda value: value[0], lateness=5, parallelism=2
    )
    averages.sink("averages", JsonLines(f"{out}/averages.jsonl"))
    return t


def expected(size):
    windows = {}
    for key, (at, degrees) in readings(size):
        start = int(at // 10) * 10
        for each in (start, start - 10, start - 20):
            windows.setdefault((key, each), []).append(degrees)
    rows = []
    for (key, start), degrees in windows.items():
        average = Fraction(sum(degrees), 3 * len(degrees))
        rows.append((key, [start, (average.numerator, average.denominator), (min(degrees), max(degrees))]))
    return {"averages": rows}
