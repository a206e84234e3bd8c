"""Count windows of ten games each, and the box's TopK by a partial over windows in time."""

import operator
import random
from functools import partial

from esault import Bolt, Topology
from esault.bolts import TopK
from esault.sinks import JsonLines
from esault.sources import Items, Paced
from esault.windows import CountWindow, TumblingWindow


def games(size):
    rng = random.Random(21)
    return [
        (rng.choice(["chess", "go", b"cards", ("dice", 2)]), {"at": i, "points": rng.randrange(10**6)})
        for i in range(size)
    ]


class Round(Bolt):
    def __init__(self):
        self.points = []
        self.order = operator.itemgetter("points")  # not kept

    def __getstate__(self):
        return self.points

    def __setstate__(self, state):
        self.points = state

    def process(self, key, value):
        self.points.append(self.order(value))

    def finish(self):
        self.emit(self.key, {"first": self.window.start, "n": len(self.points), "points": sorted(self.points)[-2:]})


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("tournaments")
    rows = t.spout("games", Paced(Items(games(size)), rate))
    rows.window("round", Round, CountWindow(10)).sink("rounds", JsonLines(f"{out}/rounds.jsonl"))
    best = rows.window("best", partial(TopK, 2, by=lambda v: v["points"]), TumblingWindow(50), time=lambda v: v["at"])
    best.map(lambda top: [value["points"] for value in top]).sink("top", JsonLines(f"{out}/top.jsonl"))
    return t


def expected(size):
    seen, windows = {}, {}
    for game, value in games(size):
        seen.setdefault(game, []).append(value["points"])
        windows.setdefault((game, value["at"] // 50), []).append(value["points"])
    rounds = []
    for game, points in seen.items():
        for first in range(0, len(points), 10):
            part = points[first : first + 10]
            rounds.append((game, {"first": first, "n": len(part), "points": sorted(part)[-2:]}))
    return {
        "rounds": rounds,
        "top": [(game, sorted(points, reverse=True)[:2]) for (game, _), points in windows.items()],
    }
