"""Counts of words into two tables of PostgreSQL: each update appended, and the newest total of each word."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.sinks import PostgresSink
from esault.sources import Items, Paced

WORDS = 40


class Count(Bolt):
    def __init__(self) -> None:
        self.total = 0

    def process(self, key, value):
        self.total += 1
        self.emit(key, (value, self.total))


def topology(dsn: str, rows: int = 6000, name: str = "to_postgres") -> Topology:
    """Return it; `rows` come in four seconds."""
    t = Topology(name)
    words = t.spout("words", Paced(Items(lambda: ((f"w{n % WORDS}", n) for n in range(rows))), rate=rows / 4))
    counts = words.bolt("count", Count, grouping=by_key(), max_parallelism=4)
    counts.sink("all", PostgresSink(dsn, "every_update", {"word": str, "number": int, "total": int}))
    counts.sink("newest", PostgresSink(dsn, "totals", {"word": str, "number": int, "total": int}, primary_key="word"))
    return t
