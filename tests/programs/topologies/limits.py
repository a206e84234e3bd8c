"""Limits that change while payments come: broadcast state and timers; what was over them by hour and region, by panes, in upsert tables.

Panes of hours replace each other. Those of regions take back what they said, since a region's sum is of many hours and shops.
"""

import json
import random
from pathlib import Path

import esault
from esault import Bolt, Topology, broadcast, by_key
from esault.aggregates import count
from esault.aggregates import max as max_of
from esault.aggregates import sum as sum_of
from esault.sinks import JsonLines, SparkTable
from esault.sources import Items, Paced
from esault.windows import TumblingWindow

LATENESS = 12
HOUR = 60
HOURS = {"shop": str, "start": int, "n": int, "over": int, "most": int}


def limits(size):
    """Each holds for payments after its own time, until the next one of its name; None takes it back."""
    rng = random.Random(51)
    return [
        (rng.choice(["day", "night", "abroad"]), {"at": at, "least": rng.choice([None, 150, 300, 450])})
        for at in range(0, size, 11)
    ]


def payments(size):
    rng = random.Random(52)
    for i in range(size):
        yield (
            f"card-{rng.randrange(25)}",
            {
                "at": max(0, i - rng.randrange(LATENESS)),
                "cents": rng.randrange(600),
                "shop": rng.choice("NSEW") + str(rng.randrange(4)),
            },
        )


class Check(Bolt):
    """Payments wait until no limit can come that holds for them."""

    def __init__(self):
        self.waiting = {}

    def process_broadcast(self, name, limit):
        before = self.broadcast_state.get(name, ())
        self.broadcast_state[name] = (*before, (limit["at"], limit["least"]))

    def process(self, card, payment):
        self.waiting.setdefault(payment["at"], []).append(payment)
        self.timer(str(payment["at"]), payment["at"])

    def on_timer(self, name, at):
        for payment in self.waiting.pop(at):
            for name, versions in sorted(self.broadcast_state.items()):
                least = [least for since, least in versions if since < at][-1:]
                if least and least[0] is not None and payment["cents"] > least[0]:
                    self.emit(payment["shop"], {"at": at, "limit": name, "over": payment["cents"] - least[0]})


class Over(Bolt):
    def __init__(self):
        self.n = self.over = 0

    def process(self, shop, alert):
        self.n += 1
        self.over += alert["over"]

    def finish(self):
        self.emit(self.key, {"region": self.key[0], "n": self.n, "over": self.over})


def add(total, change):
    told, diff = change
    return (total[0] + diff * told["n"], total[1] + diff * told["over"])


def plain_row(told):
    return {name: told[name] for name in ("start", "n", "over", "most")}


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("limits")
    paid = t.spout("payments", Paced(Items(lambda: payments(size)), rate), time=lambda p: p["at"], lateness=LATENESS)
    said = t.spout("rules", Paced(Items(limits(size)), rate / 11), time=lambda rule: rule["at"])
    alerts = t.bolt("check", Check, {paid: by_key(), said: broadcast()}, parallelism=2)
    alerts.sink("alerts", JsonLines(f"{out}/alerts.jsonl"))
    told = alerts.aggregate(
        "hours",
        {"n": count(), "over": sum_of("over"), "most": max_of("over")},
        TumblingWindow(HOUR),
        time=lambda alert: alert["at"],
        updates="accumulate",
        allowed_lateness=10**9,
        early_count=2,
    )
    table = SparkTable(f"{out}/by-hour", HOURS, primary_key=("shop", "start"))
    told.map(plain_row).sink("by-hour", table)
    over = alerts.window(
        "over",
        Over,
        TumblingWindow(HOUR),
        time=lambda alert: alert["at"],
        updates="retract",
        allowed_lateness=10**9,
        early_count=3,
        early_seconds=0.2,
    )
    regions = over.key_by(lambda change: change[0]["region"]).reduce("regions", add, initial=(0, 0))
    regions.sink(
        "by-region",
        SparkTable(f"{out}/by-region", {"region": str, "n": int, "over": int}, primary_key="region"),
    )
    return t


def together(sink, rows):
    """Of each row of an upsert table the newest."""
    if sink == "by-hour":
        return list({(key, value["start"]): (key, value) for key, value in rows}.values())
    return list(dict(rows).items()) if sink == "by-region" else rows


def written(folder, sink):
    if sink == "alerts":
        lines = map(json.loads, Path(folder, "alerts.jsonl").read_text().splitlines())
        return [(line["key"], line["value"]) for line in lines]
    rows = esault.read(Path(folder, sink)).to_pylist()
    if sink == "by-hour":
        return [(row.pop("shop"), row) for row in rows]
    return [(row["region"], (row["n"], row["over"])) for row in rows]


def expected(size):
    alerts, hours, regions = [], {}, {}
    for _, payment in payments(size):
        newest = {name: limit["least"] for name, limit in limits(size) if limit["at"] < payment["at"]}
        for name, least in newest.items():
            if least is not None and payment["cents"] > least:
                alerts.append((payment["shop"], {"at": payment["at"], "limit": name, "over": payment["cents"] - least}))
    for shop, alert in alerts:
        hours.setdefault((shop, alert["at"] // HOUR * HOUR), []).append(alert["over"])
        n, over = regions.get(shop[0], (0, 0))
        regions[shop[0]] = (n + 1, over + alert["over"])
    by_hour = [
        (shop, {"start": start, "n": len(overs), "over": sum(overs), "most": max(overs)})
        for (shop, start), overs in hours.items()
    ]
    return {
        "alerts": alerts,
        "by-hour": by_hour,
        "by-region": list(regions.items()),
    }
