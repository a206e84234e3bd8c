"""Events that a service sends, and rows that it is asked for, to JSON lines."""

from __future__ import annotations

from esault import Topology
from esault.sinks import JsonLines
from esault.sources import HttpPollSource, SseSource


def topology(url: str, name: str = "from_feeds") -> Topology:
    t = Topology(name)
    t.spout("events", SseSource(url)).map(lambda n: n).sink("out", JsonLines("events.jsonl"))
    rows = t.spout("rows", HttpPollSource(url, every=0.05, since=("from", "n"), key="n"))
    rows.map(lambda row: row["n"]).sink("polled", JsonLines("rows.jsonl"))
    return t
