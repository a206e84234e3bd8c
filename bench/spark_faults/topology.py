"""Two shuffles behind each other, for `bench/spark_faults/__main__.py`: what comes out at the end can be reckoned from what came in.

numbers -> spread (as it is, by shuffle, with state), half (doubled, by partial_key, with state) -> count (by key: how many, their sum)
-> out

Number i has key f"k{i % KEYS}" throughout. `count` puts out every EACH-th state of a key as it comes, and each at the end. It is one file,
which workers get: it imports nothing beside it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

from esault import Bolt, Context, EndOfStream, Spout, Topology, by_key, partial_key, shuffle
from esault.sinks import JsonLines

__all__ = ["EACH", "END", "KEYS", "topology"]

KEYS, EACH = 101, 64
#: in the folder: how many numbers there are, once that is known
END = "end"


class Numbers(Spout[str, int]):
    """Of two parts each every second of 0, 1, 2 ... at a rate, until the folder says up to where."""

    parallel = True

    def __init__(self, folder: str, rate: float) -> None:
        self.folder, self.rate = Path(folder), rate
        self.next = 0

    def open(self, context: Context) -> None:
        self.part, self.parts = context.part, context.parts
        self.started, self.looked = time.monotonic(), 0.0
        self.first: int | None = None
        self.last: int | None = None

    def read(self, limit: int) -> Sequence[tuple[str, int]]:
        now = time.monotonic()
        self.first = self.next if self.first is None else self.first
        if self.last is None and now - self.looked > 0.2:
            self.looked = now
            end = self.folder / END
            if end.exists():
                self.last = int(end.read_text()) // self.parts
        if self.last is not None:
            if self.next >= self.last:
                raise EndOfStream
            due = self.last - self.next  # what is left is read as fast as it goes
        elif self.rate == math.inf:
            due = limit
        else:
            due = self.first + int((now - self.started) * self.rate / self.parts) - self.next
        numbers = range(self.next, self.next + max(0, min(limit, due)))
        self.next += len(numbers)
        return [(f"k{i % KEYS}", i) for i in (n * self.parts + self.part for n in numbers)]

    def without_pace(self) -> Spout[str, int]:
        return Numbers(str(self.folder), math.inf)

    def position(self) -> int:
        return self.next

    def seek(self, position: int) -> None:
        self.next = position


class Spread(Bolt):
    """The number as it is, and how many came before: its state would be another one if other tuples came."""

    def __init__(self) -> None:
        self.n = 0

    def process(self, key: str, value: int) -> None:
        self.n += 1
        self.emit(key, value)


class Half(Bolt):
    """The number doubled; a key is in two tasks."""

    def __init__(self) -> None:
        self.n = 0

    def process(self, key: str, value: int) -> None:
        self.n += 1
        self.emit(key, 2 * value)


class Count(Bolt):
    """Count the numbers of a key, and their sum."""

    def __init__(self) -> None:
        self.n = 0
        self.sum = 0

    def process(self, key: str, value: int) -> None:
        self.n += 1
        self.sum += value
        if self.n % EACH == 0:
            self.emit(key, {"n": self.n})

    def finish(self) -> None:
        self.emit(self.key, {"n": self.n, "sum": self.sum})


def topology(folder: str, rate: float = 1000.0) -> Topology:
    """`folder`: where it is told what to do, and writes."""
    t = Topology("spark-faults")
    numbers = t.spout("numbers", Numbers(folder, rate), parallelism=2)
    spread = numbers.bolt("spread", Spread, grouping=shuffle(), parallelism=2)
    half = numbers.bolt("half", Half, grouping=partial_key())
    count = t.bolt("count", Count, inputs={spread: by_key(), half: by_key()})
    count.sink("out", JsonLines(str(Path(folder) / "out.jsonl")))
    return t
