"""Factories by functools.partial, a generator inside of process, slices by itertools, and a lambda that a factory closes over."""

import itertools
import random
from functools import partial

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


def prices(size):
    rng = random.Random(11)
    return [
        (rng.choice(["ACME", "BOLT", "CORE", "DUST"]) + str(rng.randrange(4)), rng.randrange(900, 1100))
        for _ in range(size)
    ]


class Alert(Bolt):
    def __init__(self, limit, *, names=()):
        self.limit, self.names = limit, names
        self.history = ()

    def jumps(self):
        for before, after in itertools.pairwise(self.history):
            if abs(after - before) >= self.limit:
                yield after - before

    def process(self, key, value):
        self.history = (*self.history, value)[-5:]
        for jump in itertools.islice(self.jumps(), 2):
            self.emit(key, (self.names[jump > 0], jump))


def smoothed(weight):
    class Smooth(Bolt):  # a local class; its state is plain
        def __init__(self):
            self.level = None

        def process(self, key, value):
            self.level = value if self.level is None else weight(self.level, value)
            self.emit(key, self.level)

    return Smooth


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("price-alerts")
    rows = t.spout("prices", Paced(Items(prices(size)), rate))
    rows.bolt("alert", partial(Alert, 120, names=("fell", "rose")), by_key()).sink(
        "alerts", JsonLines(f"{out}/alerts.jsonl")
    )
    rows.bolt("smooth", smoothed(lambda a, b: (3 * a + b) / 4), by_key()).sink(
        "levels", JsonLines(f"{out}/levels.jsonl")
    )
    return t


def expected(size):
    history, levels, alerts, smooth = {}, {}, [], []
    for name, price in prices(size):
        seen = history.setdefault(name, [])
        seen.append(price)
        last = seen[-5:]
        jumps = [b - a for a, b in itertools.pairwise(last) if abs(b - a) >= 120]
        alerts += [(name, ("rose" if jump > 0 else "fell", jump)) for jump in jumps[:2]]
        levels[name] = (3 * levels[name] + price) / 4 if name in levels else price
        smooth.append((name, levels[name]))
    return {"alerts": alerts, "levels": smooth}
