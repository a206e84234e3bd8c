"""A bolt that waits for each tuple, for `bench/spark_workers/__main__.py`: what a worker takes of a processor is next to nothing.

It is one file, which workers get: it imports nothing beside it.
"""

from __future__ import annotations

import time

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items

__all__ = ["KEYS", "topology"]

KEYS = 1024


class Waits(Bolt[str, int, str, dict[str, float]]):
    """Takes `seconds` for a tuple, and says when it was done."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def process(self, key: str, value: int) -> None:
        """A tuple."""
        time.sleep(self.seconds)
        self.emit(key, {"n": value, "at": time.time()})


class _Made:
    """Makes bolts that take so long."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> Waits:
        return Waits(self.seconds)


def topology(out: str, rows: int = 1000, seconds: float = 0.005) -> Topology:
    """So many rows over all keys, in turn."""
    t = Topology("spark-workers")
    numbers = t.spout("numbers", Items([(f"k{n % KEYS}", n) for n in range(rows)]))
    numbers.bolt("waits", _Made(seconds), grouping=by_key()).sink("out", JsonLines(f"{out}/out.jsonl"))
    return t
