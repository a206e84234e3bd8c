"""NumPy in values and in state: a ring buffer, a matrix that views part of it, scalars of NumPy, a random generator of its own."""

import random

import numpy as np

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


def chunks(size):
    rng = np.random.default_rng(13)
    who = random.Random(13)
    return [(who.randrange(10), rng.integers(0, 100, 4).astype(np.int32)) for _ in range(size)]


class Filter(Bolt):
    def __init__(self):
        self.ring = np.zeros((3, 4), dtype=np.float64)
        self.at = np.int64(0)
        self.peak = np.float32(0)
        self.rng = None
        self.kinds = {"dtype": np.dtype("int16"), "class": np.float64}

    def process(self, key, value):
        if self.rng is None:
            self.rng = np.random.default_rng(key)
        self.ring[self.at % 3] = value
        self.at += 1
        self.peak = max(self.peak, np.float32(value.max()))
        noise = int(self.rng.integers(0, 10))
        mean = self.ring.mean(axis=0)
        self.emit(
            key,
            {
                "mean": mean.tolist(),
                "peak": float(self.peak),
                "n": int(self.at),
                "noise": noise,
                "kind": str(self.kinds["dtype"]),
                "top": self.kinds["class"](mean.max()).item(),
                "raw": value[::-1].copy(),
            },
        )


def listed(value):
    """JSON has no arrays of NumPy."""
    return {**value, "raw": value["raw"].tolist()}


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("signals")
    signals = t.spout("chunks", Paced(Items(chunks(size)), rate)).bolt("filter", Filter, by_key())
    signals.map(listed).sink("means", JsonLines(f"{out}/means.jsonl"))
    return t


def expected(size):
    rows, seen, noise = [], {}, {}
    for key, chunk in chunks(size):
        mine = seen.setdefault(key, [])
        mine.append([int(x) for x in chunk])
        rng = noise.setdefault(key, np.random.default_rng(key))
        last = (mine[-3:] + [[0] * 4] * 3)[:3]
        # in the order in which they lie in the ring, for the last bit of the sums
        ring = [[0] * 4] * 3
        for back in range(min(3, len(mine))):
            ring[(len(mine) - 1 - back) % 3] = mine[-1 - back]
        assert sorted(ring) == sorted(last)
        means = [sum(column) / 3 for column in zip(*ring)]
        value = {
            "mean": means,
            "peak": float(max(map(max, mine))),
            "n": len(mine),
            "noise": int(rng.integers(0, 10)),
            "kind": "int16",
            "top": max(means),
            "raw": mine[-1][::-1],
        }
        rows.append((key, value))
    return {"means": rows}
