"""pandas in values and state: Timestamps as values, a Series and a DataFrame that grow in the state, an Interval, a Categorical."""

import random

import pandas as pd

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced

START = pd.Timestamp("2026-01-01", tz="Europe/Rome")


def ticks(size):
    rng = random.Random(14)
    return [
        (f"p{rng.randrange(8)}", (START + pd.Timedelta(minutes=i * 7), rng.randrange(100) / 4)) for i in range(size)
    ]


class Prices(Bolt):
    def __init__(self):
        self.frame = pd.DataFrame({"price": pd.Series(dtype="float64")}, index=pd.DatetimeIndex([], tz="Europe/Rome"))
        self.days = pd.Series(dtype="int64")
        self.kinds = pd.Categorical([], categories=["cheap", "dear"])
        self.first = pd.NaT
        self.range = pd.Interval(0, 10, closed="left")

    def process(self, key, value):
        at, price = value
        if self.first is pd.NaT:
            self.first = at
        row = pd.DataFrame({"price": [price]}, index=pd.DatetimeIndex([at]))
        self.frame = (row if self.frame.empty else pd.concat([self.frame, row])).tail(5)
        day = at.strftime("%F")
        self.days.loc[day] = self.days.get(day, 0) + 1
        self.kinds = pd.Categorical(
            [*self.kinds, "cheap" if price in self.range else "dear"][-5:], self.kinds.categories
        )
        self.emit(
            key,
            {
                "mean": float(self.frame["price"].mean()),
                "since": at - self.first,
                "day": int(self.days[day]),
                "dear": int((self.kinds == "dear").sum()),
                "first": self.frame.index[0],
            },
        )


def plain(value):
    return {**value, "since": value["since"].total_seconds(), "first": value["first"].isoformat()}


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("tables-of-prices")
    prices = t.spout("ticks", Paced(Items(ticks(size)), rate)).bolt("prices", Prices, by_key())
    prices.map(plain).sink("tables", JsonLines(f"{out}/tables.jsonl"))
    return t


def expected(size):
    seen, rows = {}, []
    for key, (at, price) in ticks(size):
        mine = seen.setdefault(key, [])
        mine.append((at, price))
        last = mine[-5:]
        value = {
            "mean": sum(p for _, p in last) / len(last),
            "since": (at - mine[0][0]).total_seconds(),
            "day": sum(t.date() == at.date() for t, _ in mine),
            "dear": sum(p >= 10 for _, p in last),
            "first": last[0][0].isoformat(),
        }
        rows.append((key, value))
    return {"tables": rows}
