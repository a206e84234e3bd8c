"""Cards whose small payment is followed by two large ones, and orders that nobody paid: patterns, with dataclasses."""

import random
from dataclasses import dataclass

from esault import Topology
from esault.patterns import Pattern
from esault.sinks import JsonLines
from esault.sources import Items, Paced

LATENESS = 15


@dataclass(frozen=True)
class Paid:
    at: int
    sum: int


def payments(size):
    rng = random.Random(41)
    return [
        (rng.randrange(12), Paid(max(0, i - rng.randrange(LATENESS)), rng.choice([1, 20, 40, 600, 900])))
        for i in range(size)
    ]


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("fraud")
    cards = t.spout("payments", Paced(Items(payments(size)), rate), time=lambda paid: paid.at, lateness=LATENESS)
    tried = Pattern[Paid]().begin("small", lambda p: p.sum < 5).followed_by("large", lambda p: p.sum > 500).times(2)
    alerts = cards.pattern("alerts", tried.within(60))
    alerts.sink("found", JsonLines(f"{out}/found.jsonl"))
    silent = Pattern[Paid]().begin("large", lambda p: p.sum == 900).not_followed_by("any", lambda p: True).within(20)
    cards.pattern("silent", silent).sink("quiet", JsonLines(f"{out}/quiet.jsonl"))
    return t


def expected(size):
    found, quiet = [], []
    for card in range(12):
        paid = sorted((p for key, p in payments(size) if key == card), key=lambda p: p.at)
        for i, first in enumerate(paid):
            later = [p for p in paid[i + 1 :] if p.at - first.at < 60]
            large = [p for p in later if p.sum > 500]
            if first.sum < 5 and len(large) > 1:
                found.append((card, {"small": [first], "large": large[:2]}))
            if first.sum == 900 and not any(p.at - first.at < 20 for p in later):
                quiet.append((card, {"large": [first]}))
    return {"found": found, "quiet": quiet}
