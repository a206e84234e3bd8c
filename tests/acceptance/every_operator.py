"""A topology with every operator that a stream has by name, each before a sink of its own; what lands is the same on every engine."""

from __future__ import annotations

import asyncio

from esault import Topology
from esault import aggregates as agg
from esault.sinks import Collect, JsonLines
from esault.sources import Items
from esault.windows import TumblingWindow

#: sinks whose rows are the same whatever comes first between two keys
NAMES = (
    "filter",
    "map",
    "flat_map",
    "key_by",
    "reduce",
    "aggregate",
    "running",
    "union",
    "large",
    "rest",
    "sample",
    "throttle",
    "throttled",
    "debounce",
    "batch",
    "pairwise",
    "changes",
    "enrich",
    "lookup",
    "distinct",
)
TABLE = {0: "none", 1: "one", 2: "two"}


def rows(n):
    """Three keys in turn, a second apart; values come in runs of nine."""
    return [(f"k{i % 3}", {"at": i, "n": i, "v": i // 9 % 4}) for i in range(n)]


def at(value):
    return value["at"]


def v(value):
    return value["v"]


async def asked(value):
    await asyncio.sleep(0)
    return "answer"


def every_operator(n: int = 300, out: str = "", name: str = "every-operator") -> Topology:
    """With `out` it lands as lines of JSON in that folder."""
    t = Topology(name)
    s = t.spout("rows", Items(rows(n)), time=at, lateness=2)
    parts = s.split({"large": lambda value: value["v"] > 1})
    throttled = s.throttle("throttle", 2, 10, by="event")
    exact = {"n": agg.count(), "sum": agg.sum("v"), "mean": agg.mean("v"), "least": agg.min("n"), "most": agg.max("n")}
    more = {
        "best": agg.top_k(2, "n"),
        "all": agg.collect("n"),
        "half": agg.quantile(0.5, "n"),
        "kinds": agg.distinct("v"),
    }
    streams = {
        "filter": s.filter(lambda value: value["n"] % 2 == 0),
        "map": s.map(v),
        "flat_map": s.flat_map(lambda value: [value["n"]] * value["v"]),
        "key_by": s.key_by(v),
        "reduce": s.reduce("reduce", lambda total, value: total + value["v"], initial=0, parallelism=2),
        "aggregate": s.aggregate("aggregate", {**exact, **more}, TumblingWindow(20), parallelism=2),
        "running": s.aggregate("running", exact),
        "union": parts["large"].union(parts["rest"]).pairwise("united"),
        "large": parts["large"],
        "rest": parts["rest"],
        "sample": s.sample(1.0),
        "throttle": throttled,
        "throttled": throttled["throttled"],
        "debounce": s.key_by(v).debounce("debounce", 5, by="event"),
        "batch": s.batch("batch", 7),
        "pairwise": s.pairwise("pairwise", parallelism=2),
        "changes": s.changes("changes", v),
        "enrich": s.enrich("enrich", asked, cache=1e6),
        "lookup": s.lookup(TABLE, v),
        "distinct": s.distinct("distinct", key=lambda value: (value["v"], value["n"] % 5), within=30),
    }
    assert tuple(streams) == NAMES
    for name, stream in streams.items():
        stream.sink(f"{name}-rows", JsonLines(f"{out}/{name}.jsonl") if out else Collect())
    return t
