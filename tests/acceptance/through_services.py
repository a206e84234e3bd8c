"""Rows from Redis, NATS and web services and back to them, as those of `through_outages.py`."""

from __future__ import annotations

from typing import Any

from through_outages import counted

from esault import Topology
from esault.sinks import NatsSink, RedisSink, WebhookSink
from esault.sources import HttpPollSource, NatsSource, RedisSource, SseSource, WebSocketSource


def redis(url: str, name: str = "outage") -> Topology:
    """Return it; it has no end."""
    return counted(name, RedisSource("here", url), RedisSink("there", url))


def nats(url: str, here: str, there: str, name: str = "outage") -> Topology:
    """Return it; it has no end."""
    return counted(name, NatsSource(here, url), NatsSink(there, f"{there}.n", url))


def _web(name: str, source: Any, port: int) -> Topology:
    return counted(name, source, WebhookSink(f"http://127.0.0.1:{port}/take"))


def events(port: int, name: str = "outage") -> Topology:
    return _web(name, SseSource(f"http://127.0.0.1:{port}/events", silence=10), port)


def rows(port: int, name: str = "outage") -> Topology:
    """Return it; it has no end."""
    return _web(name, HttpPollSource(f"http://127.0.0.1:{port}/rows", every=0.2, since=("from", "n"), timeout=5), port)


def feed(port: int, name: str = "outage") -> Topology:
    """Return it; it has no end."""
    return _web(name, WebSocketSource(f"ws://127.0.0.1:{port}/feed"), port)
