"""Rows from a server and back to it, numbered by key, and to JSON lines: at a pace at which they outlast an outage of 30 s."""

from __future__ import annotations

import time
from typing import Any

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines, NatsSink, RedisSink, WebhookSink
from esault.sources import HttpPollSource, NatsSource, RedisSource, SseSource, WebSocketSource

KEYS = 10
RATE = 150.0


class Count(Bolt):
    """Numbers the rows of a key."""

    def __init__(self) -> None:
        self.count = 0

    def process(self, key, value):
        self.count += 1
        self.emit(key, {"n": value["n"], "count": self.count})


class Slowly(Bolt):
    """Takes a while for each row: what is read in splits has no pace."""

    def process(self, key, value):
        time.sleep(1 / RATE)
        self.emit(key, value)


def _counted(name: str, source: Any, sink: Any) -> Topology:
    t = Topology(name)
    rows = t.spout("rows", source).map(lambda value: {"n": int(value["n"])}).key_by(lambda value: value["n"] % KEYS)
    rows = rows.bolt("slowly", Slowly, grouping=by_key())
    counts = rows.bolt("count", Count, grouping=by_key(), parallelism=2)
    counts.sink("there", sink)
    counts.sink("lines", JsonLines("out.jsonl"))
    return t


def redis(url: str, name: str = "outage") -> Topology:
    """Return it; it has no end."""
    return _counted(name, RedisSource("here", url), RedisSink("there", url))


def nats(url: str, here: str, there: str, name: str = "outage") -> Topology:
    """Return it; it has no end."""
    return _counted(name, NatsSource(here, url), NatsSink(there, f"{there}.n", url))


def _web(name: str, source: Any, port: int) -> Topology:
    return _counted(name, source, WebhookSink(f"http://127.0.0.1:{port}/take"))


def events(port: int, name: str = "outage") -> Topology:
    return _web(name, SseSource(f"http://127.0.0.1:{port}/events", silence=10), port)


def rows(port: int, name: str = "outage") -> Topology:
    """Return it; it has no end."""
    return _web(name, HttpPollSource(f"http://127.0.0.1:{port}/rows", every=0.2, since=("from", "n"), timeout=5), port)


def feed(port: int, name: str = "outage") -> Topology:
    """Return it; it has no end."""
    return _web(name, WebSocketSource(f"ws://127.0.0.1:{port}/feed"), port)
