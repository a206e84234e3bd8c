"""Clicks with the last impression before each, the price as of the click, and what a campaign has spent: joins by time, and of tables."""

import random
from dataclasses import dataclass

from esault import Topology
from esault.sinks import JsonLines
from esault.sources import Items, Paced
from esault.windows import TumblingWindow

LATENESS = 20
#: the times that a run's two spouts are apart may be anything: no row is late
NEVER_LATE = 10**9


@dataclass(frozen=True)
class Shown:
    at: int
    campaign: str


def impressions(size):
    rng = random.Random(31)
    return [
        (rng.randrange(20), Shown(max(0, i - rng.randrange(LATENESS)), rng.choice(["red", "blue"])))
        for i in range(size)
    ]


def clicks(size):
    rng = random.Random(32)
    return [(rng.randrange(20), {"at": max(0, i - rng.randrange(LATENESS)), "n": i}) for i in range(0, size, 3)]


def prices(size):
    rng = random.Random(33)
    # No two versions of a campaign have one time.
    return [
        (campaign, {"at": at, "price": rng.randrange(1, 9)})
        for at in range(0, size, 40)
        for campaign in ("red", "blue")
    ]


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("attribution")
    shown = t.spout("impressions", Paced(Items(impressions(size)), rate), time=lambda s: s.at, lateness=NEVER_LATE)
    clicked = t.spout("clicks", Paced(Items(clicks(size)), rate), time=lambda c: c["at"], lateness=NEVER_LATE)
    priced = t.spout("prices", Paced(Items(prices(size)), rate), time=lambda p: p["at"], lateness=NEVER_LATE)
    pairs = clicked.join("pairs", shown, within=(60, 0), kind="left", keep="last")
    pairs.sink("pairs", JsonLines(f"{out}/pairs.jsonl"))
    near = clicked.join("near", shown, within=(5, 5), kind="outer")
    near.sink("near", JsonLines(f"{out}/near.jsonl"))
    bought = pairs.filter(lambda pair: pair[1] is not None).key_by(lambda pair: pair[1].campaign)
    cost = bought.join_table("cost", priced, as_of=True, time=(lambda pair: pair[0]["at"], lambda p: p["at"]))
    cost.sink("cost", JsonLines(f"{out}/cost.jsonl"))
    daily = t.join(
        "hours",
        [clicked, shown],
        TumblingWindow(300),
        time={clicked: lambda c: c["at"], shown: lambda s: s.at},
        keep="first",
    )
    daily.sink("hours", JsonLines(f"{out}/hours.jsonl"))
    return t


def expected(size):
    shown, pairs, near, matched, cost = impressions(size), [], [], set(), []
    for user, click in clicks(size):
        before = [s for who, s in shown if who == user and click["at"] - 60 <= s.at <= click["at"]]
        last = max(reversed(before), key=lambda s: s.at) if before else None
        pairs.append((user, (click, last)))
        close = [i for i, (who, s) in enumerate(shown) if who == user and abs(s.at - click["at"]) <= 5]
        matched.update(close)
        near += [(user, (click, shown[i][1])) for i in close] or [(user, (click, None))]
        if last is not None:
            versions = [p for campaign, p in prices(size) if campaign == last.campaign and p["at"] <= click["at"]]
            cost.append((last.campaign, ((click, last), versions[-1])))
    near += [(user, (None, s)) for i, (user, s) in enumerate(shown) if i not in matched]
    first = {}
    for side, rows in enumerate((clicks(size), shown)):
        for user, value in rows:
            time = value.at if side else value["at"]
            both = first.setdefault((user, time // 300), [None, None])
            if both[side] is None or time < (both[side].at if side else both[side]["at"]):
                both[side] = value
    hours = [(user, tuple(both)) for (user, _), both in first.items() if None not in both]
    return {"pairs": pairs, "near": near, "cost": cost, "hours": hours}
