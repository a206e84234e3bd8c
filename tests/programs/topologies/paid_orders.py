"""Two spouts joined in windows, outer, so that what has no partner comes out as well; values are dataclasses and dicts."""

import random
from dataclasses import dataclass

from esault import Topology
from esault.sinks import JsonLines
from esault.sources import Items, Paced
from esault.windows import TumblingWindow


@dataclass(frozen=True)
class Order:
    at: float
    items: tuple[str, ...]


def orders(size):
    rng = random.Random(22)
    return [(i // 2, Order(float(i), (rng.choice("ab"), str(i)))) for i in range(size) if rng.random() < 0.8]


def payments(size):
    rng = random.Random(23)
    return [(i // 2, {"at": i, "paid": rng.randrange(100)}) for i in range(size) if rng.random() < 0.7]


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("paid-orders")
    left = t.spout("orders", Paced(Items(orders(size)), rate))
    right = t.spout("payments", Paced(Items(payments(size)), rate))
    pairs = left.join(
        "paid", right, TumblingWindow(100), time=(lambda o: o.at, lambda p: p["at"]), kind="outer", lateness=10**9
    )
    pairs.sink("pairs", JsonLines(f"{out}/pairs.jsonl"))
    return t


def expected(size):
    groups = {}
    for side, rows in enumerate((orders(size), payments(size))):
        for key, value in rows:
            at = value.at if side == 0 else value["at"]
            groups.setdefault((key, int(at) // 100), ([], []))[side].append(value)
    return {
        "pairs": [
            (key, (o, p)) for (key, _), (left, right) in groups.items() for o in left or [None] for p in right or [None]
        ]
    }
