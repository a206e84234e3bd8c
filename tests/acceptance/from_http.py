"""Rows that are POSTed here, numbered by key, to JSON lines and to a webhook."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines, WebhookSink
from esault.sources import HttpServerSource


class Count(Bolt):
    """Numbers the rows of a key."""

    def __init__(self):
        self.count = 0

    def process(self, key, value):
        self.count += 1
        self.emit(key, {"value": value["value"], "count": self.count})


def topology(port: int, url: str, name: str = "from_http") -> Topology:
    t = Topology(name)
    posts = t.spout("posts", HttpServerSource(port=port, key="key", answer="durable"))
    counts = posts.bolt("count", Count, grouping=by_key(), max_parallelism=4)
    counts.sink("lines", JsonLines("out.jsonl"))
    counts.sink("hook", WebhookSink(url))
    return t
