"""Sums so far of numbers that are all others, on Spark with its state in S3: what is left out or comes twice shows in all that follows.

Of the numbers a half comes before there is a file `go` in the folder: a test kills the run until then, and it does not end before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from esault import Bolt, EndOfStream, Spout, Topology, by_key
from esault.sinks import JsonLines

N, KEYS = 4000, 7


class Numbers(Spout[int, int]):
    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.next = 0
        self.opened = False

    def read(self, limit: int) -> Sequence[tuple[int, int]]:
        self.opened = self.opened or (self.folder / "go").exists()
        last = N if self.opened else N // 2
        numbers = range(self.next, min(last, self.next + min(limit, 100)))
        if self.next >= N:
            raise EndOfStream
        self.next += len(numbers)
        return [(i % KEYS, 1 + i) for i in numbers]

    def position(self) -> int:
        return self.next

    def seek(self, position: int) -> None:
        self.next = position


class Sum(Bolt):
    def __init__(self) -> None:
        self.total = 0

    def process(self, key: int, value: int) -> None:
        self.total += value
        self.emit(key, self.total)


def topology(folder: str) -> Topology:
    t = Topology("numbers")
    sums = t.spout("numbers", Numbers(folder)).bolt("sum", Sum, grouping=by_key())
    sums.sink("rows", JsonLines(f"{folder}/rows.jsonl"))
    return t
