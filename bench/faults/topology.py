"""Four units with state and a fan-in, for `bench/faults/__main__.py`: what comes out at the end can be reckoned from the number that came in.

numbers -> left (doubles), right (as it is, by key) -> count (by key: how many, their sum) -> out

Number i has key f"k{i % KEYS}" throughout. With checkpoints `count` puts out every EACH-th state of a key as it comes, and each at the end.
Without them it puts out each tuple: state may count a replay twice, and none may be missing.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path

from esault import Bolt, Context, EndOfStream, Spout, Topology, by_key, shuffle
from esault.sinks import JsonLines

__all__ = ["EACH", "KEYS", "TOPOLOGY", "topology"]

KEYS, EACH = 997, 16
#: this file, as a run is given it
TOPOLOGY = Path(__file__)
#: in the folder: how many numbers there are, once that is known; how many were read; until when consumers are slow
END, READ, SLOW = "end", "read.json", "slow"


class Numbers(Spout[str, int]):
    """0, 1, 2 ... at a rate, until the folder says up to where. It follows days of so many seconds, if that is not 0: from a fifth to 9/5."""

    def __init__(self, folder: str, rate: float, day: float) -> None:
        self.folder, self.rate, self.day = Path(folder), rate, day
        self.next = 0

    def open(self, context: Context) -> None:
        self.started, self.looked = time.time(), 0.0
        self.first: int | None = None
        self.last: int | None = None

    def read(self, limit: int) -> Sequence[tuple[str, int]]:
        now = time.time()
        if self.first is None:
            self.first = self.next
        if now - self.looked > 0.2:
            self.looked = now
            end = self.folder / END
            if end.exists():
                self.last = int(end.read_text())
        if self.last is not None and self.next >= self.last:
            (self.folder / READ).write_text(json.dumps({"next": self.next}))
            raise EndOfStream
        due = self.first + int(self._come(now) - self._come(self.started)) - self.next
        if self.last is not None:
            due = self.last - self.next  # what is left is read as fast as it goes
        rows = [(f"k{i % KEYS}", i) for i in range(self.next, self.next + max(0, min(limit, due)))]
        self.next += len(rows)
        return rows

    def _come(self, seconds: float) -> float:
        """Return how many come in so many seconds, of which the first is at midnight."""
        if not self.day:
            return seconds * self.rate
        turn = 2 * math.pi / self.day
        return self.rate * (seconds - 0.8 / turn * math.sin(turn * seconds))

    def position(self) -> int:
        return self.next

    def seek(self, position: int) -> None:
        self.next = position


class Left(Bolt):
    """The number doubled."""

    def process(self, key: str, value: int) -> None:
        self.emit(key, 2 * value)


class Right(Bolt):
    """The number as it is, and how many of the key came before: state in the middle of the topology."""

    def __init__(self) -> None:
        self.n = 0

    def process(self, key: str, value: int) -> None:
        self.n += 1
        self.emit(key, value)


class Slow:
    """The answer whether consumers are to be slow just now; asked once a tenth of a second."""

    folder = Path()
    until = 0.0
    looked = 0.0

    @classmethod
    def wait(cls) -> None:
        """A slow consumer's tuple."""
        now = time.time()
        if now - cls.looked > 0.1:
            cls.looked = now
            try:
                cls.until = float((cls.folder / SLOW).read_text())
            except (OSError, ValueError):
                cls.until = 0.0
        if now < cls.until:
            time.sleep(0.002)


class Count(Bolt):
    """The count of the numbers of a key, and their sum."""

    def __init__(self) -> None:
        self.n = 0
        self.sum = 0

    def process(self, key: str, value: int) -> None:
        Slow.wait()
        self.n += 1
        self.sum += value
        if self.n % EACH == 0:
            self.emit(key, {"n": self.n})

    def finish(self) -> None:
        self.emit(self.key, {"n": self.n, "sum": self.sum})


class Pass(Bolt):
    """Every tuple, with what must not be relied upon without checkpoints beside it."""

    def __init__(self) -> None:
        self.n = 0

    def process(self, key: str, value: int) -> None:
        Slow.wait()
        self.n += 1
        self.emit(key, value)


def topology(folder: str, rate: float = 2000.0, exactly: bool = True, day: float = 0.0) -> Topology:
    """`folder`: where it is told what to do, and writes; `day`: seconds of one, in which the rate rises and falls."""
    Slow.folder = Path(folder)
    t = Topology("faults")
    numbers = t.spout("numbers", Numbers(folder, rate, day))
    left = numbers.bolt("left", Left, grouping=shuffle(), parallelism=2)
    right = numbers.bolt("right", Right, grouping=by_key(), parallelism=2)
    count = t.bolt("count", Count if exactly else Pass, inputs={left: by_key(), right: by_key()}, parallelism=2)
    count.sink("out", JsonLines(str(Path(folder) / "out.jsonl")))
    return t
