"""A BatchBolt with the state of its keys in `keyed`: dataclasses that are changed in place, and deques."""

import random
from collections import deque
from dataclasses import dataclass, field

from esault import BatchBolt, Topology, by_key, shuffle
from esault.sinks import JsonLines
from esault.sources import Items, Paced


@dataclass
class Shelf:
    pieces: int = 0
    newest: deque = field(default_factory=lambda: deque(maxlen=3))
    by_week: dict[int, int] = field(default_factory=dict)


class Read(BatchBolt):
    def process_batch(self, rows):
        self.emit_batch([(article, (int(n), int(week))) for article, line in rows for n, week in [line.split(";")]])


class Stock(BatchBolt):
    def __init__(self, start=5):
        self.start = start

    def process_batch(self, rows):
        out = []
        for article, (n, week) in rows:
            shelf = self.keyed.get(article)
            if shelf is None:
                shelf = self.keyed[article] = Shelf(self.start)
            shelf.pieces += n
            shelf.newest.append(n)
            shelf.by_week[week] = shelf.by_week.get(week, 0) + n
            out.append((article, (shelf.pieces, list(shelf.newest), dict(shelf.by_week))))
        self.emit_batch(out)


def deliveries(size):
    rng = random.Random(25)
    return [(f"art-{rng.randrange(40)}", f"{rng.randrange(-5, 20)};{i * 10 // size}") for i in range(size)]


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("stock")
    rows = t.spout("deliveries", Paced(Items(deliveries(size)), rate)).bolt("read", Read, shuffle(), max_parallelism=1)
    rows.bolt("stock", Stock, by_key()).sink("shelves", JsonLines(f"{out}/shelves.jsonl"))
    return t


def expected(size):
    seen, rows = {}, []
    for article, line in deliveries(size):
        mine = seen.setdefault(article, [])
        mine.append(tuple(map(int, line.split(";"))))
        weeks = {}
        for n, week in mine:
            weeks[week] = weeks.get(week, 0) + n
        rows.append((article, (5 + sum(n for n, _ in mine), [n for n, _ in mine[-3:]], weeks)))
    return {"shelves": rows}
