"""A list that is kept sorted, and the median of all values so far; keys are tuples."""

import random
import statistics
from bisect import insort

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


def readings(size: int) -> list[tuple[tuple[str, int], float]]:
    rng = random.Random(2)
    return [((rng.choice("abc"), rng.randrange(5)), round(rng.gauss(20, 5), 3)) for _ in range(size)]


class Median(Bolt[tuple[str, int], float, tuple[str, int], tuple[float, float, int]]):
    def __init__(self) -> None:
        self.values: list[float] = []
        self.trend = [0, 0]

    def process(self, key: tuple[str, int], value: float) -> None:
        if self.values and value > self.values[-1]:
            self.trend[1] += 1
        insort(self.values, value)
        self.trend[0] = len(self.values)
        self.emit(key, (statistics.median(self.values), self.values[0], self.trend[1]))


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("running-median")
    rows = t.spout("readings", Paced(Items(readings(size)), rate))
    rows.bolt("median", Median, by_key(), parallelism=2, max_parallelism=6).sink(
        "median", JsonLines(f"{out}/median.jsonl")
    )
    return t


def expected(size: int):
    seen, records, rows = {}, {}, []
    for key, value in readings(size):
        before = seen.setdefault(key, [])
        if before and value > max(before):
            records[key] = records.get(key, 0) + 1
        before.append(value)
        rows.append((key, (statistics.median(before), min(before), records.get(key, 0))))
    return {"median": rows}
