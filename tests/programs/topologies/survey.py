"""A sample of fixed size by a seeded Random in the state, and statistics over it; cached and plain properties."""

import random
import statistics
from functools import cached_property

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


def answers(size):
    rng = random.Random(30)
    return [(rng.choice(["north", "south", "east"]) + str(rng.randrange(4)), rng.gauss(50, 10)) for _ in range(size)]


class Sample(Bolt):
    size = 6

    def __init__(self):
        self.seen = 0
        self.sample = []
        self.rng = random.Random(1)

    @cached_property
    def weight(self):
        """Costly to find, and the same for ever."""
        return len(self.key) / 10

    @property
    def mean(self):
        return statistics.fmean(self.sample)

    @mean.setter
    def mean(self, value):
        raise AttributeError("it follows from the sample")

    def process(self, key, value):
        self.seen += 1
        if len(self.sample) < self.size:
            self.sample.append(value)
        elif (place := self.rng.randrange(self.seen)) < self.size:
            self.sample[place] = value
        self.emit(key, {"mean": self.mean * self.weight, "spread": statistics.pstdev(self.sample), "seen": self.seen})


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("survey")
    t.spout("answers", Paced(Items(answers(size)), rate)).bolt("sample", Sample, by_key()).sink(
        "samples", JsonLines(f"{out}/samples.jsonl")
    )
    return t


def expected(size):
    rows, samples, seen, rngs = [], {}, {}, {}
    for key, value in answers(size):
        sample, rng = samples.setdefault(key, []), rngs.setdefault(key, random.Random(1))
        seen[key] = seen.get(key, 0) + 1
        if len(sample) < 6:
            sample.append(value)
        else:
            place = rng.randrange(seen[key])
            sample[place : place + 1] = [value] if place < 6 else []
        mean = statistics.fmean(sample) * (len(key) / 10)
        rows.append((key, {"mean": mean, "spread": statistics.pstdev(sample), "seen": seen[key]}))
    return {"samples": rows}
