"""Count windows of ten games each, the box's TopK by a partial over windows in time, and windows with several results.

Of those that are taken back, and those of the clock, what they come to together is compared.
"""

import operator
import random
from collections import Counter
from functools import partial

from esault import Bolt, Topology
from esault.bolts import TopK
from esault.sinks import JsonLines
from esault.sources import Items, Paced
from esault.windows import CountWindow, SlidingWindow, TumblingWindow


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


class InOrder(Bolt):
    def __init__(self):
        self.seen = []

    def process(self, key, value):
        self.seen.append((value["at"], value["points"]))

    def finish(self):
        self.emit(self.key, (self.window.start, [at for at, _ in self.seen], sum(points for _, points in self.seen)))


class ByTheClock(Bolt):
    def __init__(self):
        self.points = 0

    def process(self, key, value):
        self.points += value["points"]

    def finish(self):
        self.emit(self.key, self.points)


def finished(value):
    """When a game was over: up to 40 s behind others."""
    return {**value, "at": value["at"] - value["points"] % 40}


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("tournaments")
    rows = t.spout("games", Paced(Items(games(size)), rate))
    rows.window("round", Round, CountWindow(10)).sink("rounds", JsonLines(f"{out}/rounds.jsonl"))
    best = rows.window("best", partial(TopK, 2, by=lambda v: v["points"]), TumblingWindow(50), time=lambda v: v["at"])
    best.map(lambda top: [value["points"] for value in top]).sink("top", JsonLines(f"{out}/top.jsonl"))
    late = rows.map(finished).timed(lambda value: value["at"])
    told = late.window("told", InOrder, TumblingWindow(60), updates="retract", allowed_lateness=40, early_count=3)
    # A late tuple comes behind those that were told of.
    told.map(lambda value: ((value[0][0], sorted(value[0][1]), value[0][2]), value[1])).sink(
        "told_again", JsonLines(f"{out}/told_again.jsonl")
    )
    in_order = rows.map(finished).window(
        "in_order", InOrder, SlidingWindow(60, 30), time=lambda value: value["at"], lateness=40, ordered=True
    )
    in_order.sink("in_order", JsonLines(f"{out}/in_order.jsonl"))
    clock = rows.window("clock", ByTheClock, TumblingWindow(0.5), by="processing", updates="discard", early_seconds=0.1)
    clock.sink("by_the_clock", JsonLines(f"{out}/by_the_clock.jsonl"))
    return t


def _said(key):
    """What a key is called; the sink writes those that JSON has not in its own way."""
    return str(list(key)) if isinstance(key, tuple) else "cards" if key in (b"cards", "Y2FyZHM=") else str(key)


def together(sink, rows):
    """What is left where results are taken back, and sums of what the clock has cut."""
    if sink == "told_again":
        left = Counter()
        for key, ((start, times, points), diff) in rows:
            left[_said(key), start, tuple(times), points] += diff
        return [(key, ((start, list(times), points), n)) for (key, start, times, points), n in left.items() if n]
    if sink == "by_the_clock":
        sums = Counter()
        for key, points in rows:
            sums[_said(key)] += points
        return list(sums.items())
    return rows


def expected(size):
    seen, windows = {}, {}
    for game, value in games(size):
        seen.setdefault(game, []).append(value["points"])
        windows.setdefault((game, value["at"] // 50), []).append(value["points"])
    slides, minutes = {}, {}
    for game, value in [(game, finished(value)) for game, value in games(size)]:
        minutes.setdefault((game, value["at"] // 60 * 60), []).append(value)
        for start in (value["at"] // 30 * 30 - 30, value["at"] // 30 * 30):
            slides.setdefault((game, start), []).append(value)
    rounds = []
    for game, points in seen.items():
        for first in range(0, len(points), 10):
            part = points[first : first + 10]
            rounds.append((game, {"first": first, "n": len(part), "points": sorted(part)[-2:]}))
    return {
        "rounds": rounds,
        "top": [(game, sorted(points, reverse=True)[:2]) for (game, _), points in windows.items()],
        "told_again": [(game, (_in_order(start, seen), 1)) for (game, start), seen in minutes.items()],
        "in_order": [(game, _in_order(start, seen)) for (game, start), seen in slides.items()],
        "by_the_clock": [(game, value["points"]) for game, value in games(size)],
    }


def _in_order(start, seen):
    return start, sorted(value["at"] for value in seen), sum(value["points"] for value in seen)
