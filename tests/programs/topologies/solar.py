"""Operators one behind the other, as functions over named tuples: split, union, enrich, changes, batch, throttle, days of a time zone, ttl."""

import random
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from esault import Bolt, Topology, by_key, ttl
from esault.aggregates import count, mean
from esault.aggregates import max as max_of
from esault.sinks import JsonLines
from esault.sources import Items, Paced
from esault.windows import CalendarWindow

BERLIN = ZoneInfo("Europe/Berlin")
START = int(datetime(2026, 10, 23, 17, tzinfo=BERLIN).timestamp())  # two days before the clocks are changed
PAUSE = 3600


class Reading(NamedTuple):
    at: int
    watts: int
    roof: str


def readings(size):
    rng = random.Random(81)
    for n in range(size):
        roof = f"roof-{rng.randrange(9)}"
        at = START + n * 4 * 86400 // size - rng.randrange(600)
        yield roof, Reading(at, rng.choice([0, 0, 5, *range(100, 900, 50)]), roof)


async def owner_of(reading):
    return reading.roof.replace("roof", "owner")


def is_dark(reading):
    return reading.watts == 0


class Warned(Bolt):
    """A warning of each roof, and then none for an hour."""

    warned = ttl(PAUSE, by="event")

    def process(self, roof, reading):
        if self.warned is None:
            self.warned = True
            self.emit(roof, reading.at)


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("solar")
    source = Paced(Items(lambda: readings(size)), rate)
    read = t.spout("readings", source, time=lambda reading: reading.at, lateness=600 + 1)
    kinds = read.split({"dark": is_dark, "faint": lambda reading: reading.watts < 50})
    some = kinds["faint"].union(kinds["rest"])
    days = some.aggregate(
        "days", {"n": count(), "mean": mean("watts"), "most": max_of("watts")}, CalendarWindow("day", "Europe/Berlin")
    )
    days.sink("by-day", JsonLines(f"{out}/by-day.jsonl"))
    read.changes("turns", of=is_dark).batch("turns-by-four", 4).sink("turned", JsonLines(f"{out}/turned.jsonl"))
    owned = kinds["faint"].enrich("owned", owner_of, cache=60)
    owned.key_by(lambda pair: pair[1]).sink("faints", JsonLines(f"{out}/faints.jsonl"))
    few = kinds["dark"].throttle("few", 2, 0.05)
    few.union(few["throttled"]).sink("nights", JsonLines(f"{out}/nights.jsonl"))
    read.bolt("warned", Warned, by_key()).sink("warnings", JsonLines(f"{out}/warnings.jsonl"))
    return t


def expected(size):
    days, turned, faints, nights, warnings, warned, dark = {}, {}, [], [], [], {}, {}
    for roof, reading in readings(size):
        if is_dark(reading):
            nights.append((roof, reading))
        else:
            day = datetime.fromtimestamp(reading.at, BERLIN).replace(hour=0, minute=0, second=0)
            start, end = (int(d.timestamp()) for d in (day, day.replace(day=day.day + 1)))
            days.setdefault((roof, start, end), []).append(reading.watts)
        if 0 < reading.watts < 50:
            faints.append((roof.replace("roof", "owner"), (reading, roof.replace("roof", "owner"))))
        if dark.get(roof) is not is_dark(reading):
            dark[roof] = is_dark(reading)
            turned.setdefault(roof, []).append(reading)
        if roof not in warned or reading.at >= warned[roof] + PAUSE:
            warned[roof] = reading.at
            warnings.append((roof, reading.at))
    by_day = [
        (roof, {"start": start, "end": end, "n": len(w), "mean": sum(w) / len(w), "most": max(w)})
        for (roof, start, end), w in days.items()
    ]
    fours = [(roof, rows[i : i + 4]) for roof, rows in turned.items() for i in range(0, len(rows), 4)]
    return {"by-day": by_day, "turned": fours, "faints": faints, "nights": nights, "warnings": warnings}
