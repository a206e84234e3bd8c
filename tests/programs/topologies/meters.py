"""A base bolt with template methods, mixins beside it, and three kinds of meters that differ in one method each."""

import random
from abc import ABC, abstractmethod

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


class Counted:
    """A mixin with state of its own, made by cooperation."""

    def __init__(self, **more):
        super().__init__(**more)
        self.seen = 0

    def count(self):
        self.seen += 1
        return self.seen


class Named:
    prefix = "meter"

    @property
    def label(self):
        return f"{self.prefix}:{self.key}"


class Meter(Counted, Named, Bolt, ABC):
    def __init__(self, scale=1):
        super().__init__()
        self.scale = scale
        self.level = self.start()

    def start(self):
        return 0

    @abstractmethod
    def update(self, value): ...

    def process(self, key, value):
        self.level = self.update(value)
        self.emit(key, [self.label, self.count(), self.level])


class Highest(Meter):
    prefix = "high"

    def update(self, value):
        return max(self.level, value)


class Total(Meter):
    prefix = "total"

    def update(self, value):
        return self.level + value * self.scale


class Smooth(Total):
    prefix = "smooth"

    def start(self):
        return 100.0

    def update(self, value):
        return (super().update(value) + self.level) / 2


KINDS = {"high": Highest, "total": lambda: Total(scale=3), "smooth": Smooth}


def values(size):
    rng = random.Random(7)
    return [(rng.randrange(15), rng.randrange(1000)) for _ in range(size)]


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("meters")
    rows = t.spout("values", Paced(Items(values(size)), rate))
    for name, kind in KINDS.items():
        rows.bolt(name, kind, by_key()).sink(f"{name}-out", JsonLines(f"{out}/{name}-out.jsonl"))
    return t


def expected(size):
    rows = {"high-out": [], "total-out": [], "smooth-out": []}
    seen, high, total, smooth = {}, {}, {}, {}
    for key, value in values(size):
        seen[key] = seen.get(key, 0) + 1
        high[key] = max(high.get(key, 0), value)
        total[key] = total.get(key, 0) + 3 * value
        level = smooth.get(key, 100.0)
        smooth[key] = (level + value + level) / 2
        rows["high-out"].append((key, [f"high:{key}", seen[key], high[key]]))
        rows["total-out"].append((key, [f"total:{key}", seen[key], total[key]]))
        rows["smooth-out"].append((key, [f"smooth:{key}", seen[key], smooth[key]]))
    return rows
