"""Sensors that fall silent: timers of event time, in disorder; the first reading of each hour, and the last of each burst."""

import itertools
import random

from esault import Bolt, Topology, by_key
from esault.aggregates import count, top_k
from esault.aggregates import max as max_of
from esault.aggregates import sum as sum_of
from esault.sinks import JsonLines
from esault.sources import Items, Paced
from esault.windows import TumblingWindow

QUIET, LATENESS = 30, 8
MINUTES = {"n": count(), "sum": sum_of("n"), "last": max_of("n"), "best": top_k(2, "n")}


class Silent(Bolt):
    """Tells of each pause, when it is certain that nothing came in it."""

    def __init__(self):
        self.times = []
        self.told = 0

    def process(self, key, value):
        self.times.append(value["at"])
        self.timer(f"after {value['at']}", value["at"] + QUIET)

    def on_timer(self, name, at):
        self.times = [time for time in self.times if time > at - QUIET]
        if not any(time < at for time in self.times):
            self.told += 1
            self.emit(self.key, (name, self.told))


def readings(size):
    rng, now, rows = random.Random(21), 0, []
    for n in range(size):
        now += rng.choice([0, 1, 1, 2, 9])
        rows.append((f"sensor-{rng.randrange(12)}", {"at": now - rng.randrange(LATENESS), "n": n}))
    return rows


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("silences")
    source = Paced(Items(readings(size)), rate)
    read = t.spout("read", source, time=lambda value: value["at"], lateness=LATENESS)
    read.bolt("silent", Silent, by_key(), parallelism=2).sink("silent-out", JsonLines(f"{out}/silent-out.jsonl"))
    firsts = read.distinct("firsts", within=3600, parallelism=2)
    firsts.sink("firsts-out", JsonLines(f"{out}/firsts-out.jsonl"))
    read.aggregate("minutes", MINUTES, TumblingWindow(60), parallelism=2).sink(
        "minutes-out", JsonLines(f"{out}/minutes-out.jsonl")
    )
    read.debounce("last", 20, by="event").sink("last-out", JsonLines(f"{out}/last-out.jsonl"))
    read.pairwise("steps").map(lambda pair: pair[1]["n"] - pair[0]["n"]).sink(
        "steps-out", JsonLines(f"{out}/steps-out.jsonl")
    )
    return t


def expected(size):
    by_sensor: dict = {}
    for key, value in readings(size):
        by_sensor.setdefault(key, []).append(value)
    silent, firsts, last, steps = [], [], [], []
    for key, values in by_sensor.items():
        newest = {value["at"]: value for value in values}
        told = 0
        for at in sorted(newest):
            if not any(at < other < at + QUIET for other in newest):
                told += 1
                silent.append((key, (f"after {at}", told)))
        last += [(key, v) for at, v in newest.items() if not any(at < other < at + 20 for other in newest)]
        kept: list = []
        for value in values:
            if not any(abs(value["at"] - time) < 3600 for time in kept):
                kept.append(value["at"])
                firsts.append((key, value))
        steps += [(key, after["n"] - before["n"]) for before, after in itertools.pairwise(values)]
    minutes: dict = {}
    for key, value in readings(size):
        minutes.setdefault((key, value["at"] // 60 * 60), []).append(value)
    told = [
        (
            key,
            {
                "start": start,
                "end": start + 60,
                "n": len(values),
                "sum": sum(value["n"] for value in values),
                "last": max(value["n"] for value in values),
                "best": sorted(values, key=lambda value: -value["n"])[:2],
            },
        )
        for (key, start), values in minutes.items()
    ]
    return {"minutes-out": told, "silent-out": silent, "firsts-out": firsts, "last-out": last, "steps-out": steps}
