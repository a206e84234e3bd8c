"""Tumbling windows with a dataclass in their state, windows of windows over them, and late tuples beside."""

import random
from dataclasses import dataclass, field

from esault import Bolt, Topology
from esault.sinks import JsonLines
from esault.sources import Items, Paced
from esault.windows import TumblingWindow


@dataclass
class Till:
    total: int = 0
    clerks: list[str] = field(default_factory=list)


def payments(size):
    rng = random.Random(18)
    rows = []
    for i in range(size):
        at = 1_700_000_000 + i * 11 - (rng.randrange(40) if i % 5 else 0)
        rows.append((f"shop{rng.randrange(4)}", {"at": at, "cents": rng.randrange(500), "clerk": rng.choice("xyz")}))
    return rows


class Takings(Bolt):
    def __init__(self):
        self.till = Till()

    def process(self, key, value):
        self.till.total += value["cents"]
        if value["clerk"] not in self.till.clerks:
            self.till.clerks.append(value["clerk"])

    def finish(self):
        self.emit(self.key, {"end": self.window.end, "total": self.till.total, "clerks": self.till.clerks})


class Best(Bolt):
    def __init__(self):
        self.best = []

    def process(self, key, value):
        self.best = sorted([*self.best, value["total"]], reverse=True)[:2]

    def finish(self):
        self.emit(self.key, (self.window.start, self.best))


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("takings-by-hour")
    paid = t.spout("payments", Paced(Items(payments(size)), rate), time=lambda value: value["at"], lateness=60)
    minutes = paid.window("minutes", Takings, TumblingWindow(300))
    minutes.sink("takings", JsonLines(f"{out}/takings.jsonl"))
    hours = minutes.window("hours", Best, TumblingWindow(1800), time=lambda value: value["end"] - 1)
    hours.sink("best", JsonLines(f"{out}/best.jsonl"))
    return t


def expected(size):
    windows, hours = {}, {}
    for shop, p in payments(size):
        windows.setdefault((shop, p["at"] // 300 * 300), []).append(p)
    takings = []
    for (shop, start), paid in windows.items():
        total = sum(p["cents"] for p in paid)
        takings.append(
            (shop, {"end": start + 300, "total": total, "clerks": list(dict.fromkeys(p["clerk"] for p in paid))})
        )
        hours.setdefault((shop, start // 1800 * 1800), []).append(total)
    best = [(shop, (start, sorted(totals, reverse=True)[:2])) for (shop, start), totals in hours.items()]
    return {"takings": takings, "best": best}
