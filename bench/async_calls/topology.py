"""Calls of a service that answers after so long: by a bolt that waits for each, or by one that has many open."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.workloads.topologies import Counted
from esault import Bolt, Topology, by_key
from esault.sources import Items

__all__ = ["topology"]

#: keys, so that no two calls that could be open at once have one key
KEYS = 4096


class Waits(Bolt):
    """Sleeping stands for a remote service: it takes time and no processor."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    async def process(self, key, value):
        if self.seconds:
            await asyncio.sleep(self.seconds)
        self.emit(key, value)

    def __getstate__(self):
        return {}


class Blocks(Waits):
    def process(self, key, value):
        if self.seconds:
            time.sleep(self.seconds)
        self.emit(key, value)


def topology(out: str, rows: int, seconds: float, concurrency: int = 0) -> Topology:
    """`rows` calls of `seconds` each; `concurrency` 0: a plain def."""
    t = Topology("async-calls")
    calls = t.spout("calls", Items([(f"k{i % KEYS}", i) for i in range(rows)]))
    options: dict[str, Any] = {"concurrency": concurrency} if concurrency else {}
    service = calls.bolt("service", lambda: (Waits if concurrency else Blocks)(seconds), by_key(), **options)
    service.sink("counted", Counted(out))
    return t
