"""Session windows: a visit lasts until a minute passes without a click; its path is a list of NamedTuples."""

import random
from typing import NamedTuple

from esault import Bolt, Topology
from esault.sinks import JsonLines
from esault.sources import Items, Paced
from esault.windows import SessionWindow


class Click(NamedTuple):
    at: int
    page: str


def clicks(size):
    rng = random.Random(20)
    rows, at = [], 5000
    for _ in range(size):
        at += rng.randrange(12)
        rows.append((f"u{rng.randrange(12)}", Click(at - rng.randrange(8), rng.choice(["a", "b", "c"]))))
    return rows


class Visit(Bolt):
    def __init__(self):
        self.path = []

    def process(self, key, value):
        self.path.append(value)

    def finish(self):
        pages = "".join(sorted(click.page for click in self.path))
        self.emit(self.key, (self.window.start, self.window.end, pages, self.path[0].at))


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("visits")
    rows = t.spout("clicks", Paced(Items(clicks(size)), rate))
    visits = rows.window("visit", Visit, SessionWindow(60), time=lambda click: click.at, lateness=10)
    visits.sink("visits", JsonLines(f"{out}/visits.jsonl"))
    return t


def expected(size):
    by_user, rows = {}, []
    for user, click in clicks(size):
        by_user.setdefault(user, []).append(click)
    for user, seen in by_user.items():
        visit = []
        for click in [*sorted(seen), None]:
            if visit and (click is None or click.at - visit[-1].at > 60):
                pages = "".join(sorted(c.page for c in visit))
                rows.append((user, (visit[0].at, visit[-1].at + 60, pages, visit[0].at)))
                visit = []
            visit.append(click)
    return {"visits": rows}
