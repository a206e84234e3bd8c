"""A topology whose bolt refuses some tuples until a file is there; then they can be sent again."""

from pathlib import Path

from esault import Bolt, Topology, by_key, dead_letter
from esault.sinks import JsonLines
from esault.sources import DeadLetters, Items, Paced


class Total(Bolt):
    def __init__(self, mended):
        self.mended = Path(mended)
        self.count = 0

    def process(self, key, value):
        if value % 5 == 0 and not self.mended.exists():
            raise ValueError(f"{value} is not known")
        self.count += 1
        self.emit(key, (value, self.count))


def topology(name: str, rows: int = 100_000) -> Topology:
    t = Topology(name)
    numbers = t.spout("numbers", Paced(Items([(i % 11, i) for i in range(rows)]), rate=400))
    total = numbers.bolt(
        "total", lambda: Total("mended"), grouping=by_key(), parallelism=2, on_error=dead_letter("dead.jsonl")
    )
    total.sink("out", JsonLines("out"))
    return t


def again(name: str, out: str) -> Topology:
    t = Topology(name)
    numbers = t.spout("failed", DeadLetters("dead.jsonl", unit="total"))
    numbers.bolt("total", lambda: Total("mended"), grouping=by_key()).sink("out", JsonLines(out))
    return t
