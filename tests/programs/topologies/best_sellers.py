"""Windows whose hot keys are split: more than half of all sales are of one article, which is another one later."""

import functools
import random
from dataclasses import dataclass, field

from esault import Bolt, Topology
from esault.aggregates import count, max, sum
from esault.sinks import JsonLines
from esault.sources import Items, Paced
from esault.windows import SlidingWindow, TumblingWindow


@dataclass
class Basket:
    cents: int = 0
    numbers: set[int] = field(default_factory=set)


def sales(size):
    rng = random.Random(41)
    return [
        (
            rng.choice(["hot" if 2 * i < size else "later"] * 5 + [f"article{rng.randrange(9)}"] * 3),
            {"at": i * 3 - rng.randrange(20), "cents": rng.randrange(500), "n": i},
        )
        for i in range(size)
    ]


class Sold(Bolt[str, dict, str, dict]):
    def __init__(self, currency):
        self.currency = currency
        self.basket = Basket()
        self.most = None

    def process(self, key, value):
        self.basket.cents += value["cents"]
        self.basket.numbers.add(value["n"])
        if self.most is None or value["cents"] > self.most:
            self.most = value["cents"]

    def combine(self, other):
        self.basket.cents += other.basket.cents
        self.basket.numbers |= other.basket.numbers
        self.most = max_of(self.most, other.most)

    def finish(self):
        paid = (self.basket.cents, self.currency)
        self.emit(
            self.key, {"end": self.window.end, "paid": paid, "of": sorted(self.basket.numbers), "most": self.most}
        )


def max_of(one, other):
    return one if one > other else other


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("best-sellers")
    sold = t.spout("sales", Paced(Items(sales(size)), rate), time=lambda value: value["at"], lateness=60)
    minutes = sold.window(
        "minutes", functools.partial(Sold, "EUR"), TumblingWindow(300), parallelism=3, split_hot_keys=True
    )
    minutes.sink("minutes", JsonLines(f"{out}/minutes.jsonl"))
    known = {"n": count(), "cents": sum("cents"), "most": max("cents")}
    sliding = sold.aggregate(
        "sliding", known, SlidingWindow(600, 300), combine=False, parallelism=2, split_hot_keys=True
    )
    sliding.sink("sliding", JsonLines(f"{out}/sliding.jsonl"))
    return t


def expected(size):
    tumbling, sliding = {}, {}
    for key, sale in sales(size):
        start = sale["at"] // 300 * 300
        tumbling.setdefault((key, start), []).append(sale)
        for each in (start - 300, start):
            sliding.setdefault((key, each), []).append(sale)
    minutes = []
    for (key, start), sold in tumbling.items():
        paid, numbers = 0, []
        for sale in sold:
            paid += sale["cents"]
            numbers.append(sale["n"])
        most = sorted(sale["cents"] for sale in sold)[-1]
        minutes.append((key, {"end": start + 300, "paid": (paid, "EUR"), "of": numbers, "most": most}))
    found = []
    for (key, start), sold in sliding.items():
        cents = [sale["cents"] for sale in sold]
        values = {"n": len(cents), "cents": 0, "most": sorted(cents)[-1]}
        for each in cents:
            values["cents"] += each
        found.append((key, {"start": start, "end": start + 600, **values}))
    return {"minutes": minutes, "sliding": found}
