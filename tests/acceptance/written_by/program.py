"""What ran when the archives beside it were written, by eSault as it was then: all that a run keeps, in one topology.

Sources with positions, without any (a spool), and of splits; state of keys, of a unit, of batches and in windows; lines and a table.
It waits after a good half of the rows until a file `gate` is there, so that it can be killed between two checkpoints. `slow`: a bolt
takes its time, and what waits before it is in the checkpoint. Bolts are written as users had to write them then.
"""

import os
import time
from pathlib import Path

from esault import BatchBolt, Bolt, EndOfStream, Spout, Topology, by_key, single
from esault.sinks import JsonLines, SparkTable

N = 3000
HALF = 1700


class Numbers(Spout):
    """Rows that can be read again from a position."""

    def __init__(self):
        self.next = 0

    def read(self, limit):
        if self.next == N:
            raise EndOfStream
        open_gate = os.path.exists("gate")
        if self.next >= HALF and not open_gate:
            return []
        if not open_gate:
            time.sleep(0.02)
        rows = [(f"k{i % 9}", i) for i in range(self.next, min(N, self.next + min(limit, 25)))]
        self.next += len(rows)
        return rows

    def position(self):
        return [self.next]

    def seek(self, position):
        (self.next,) = position


class Once(Spout):
    """Rows that are read once: what was read before stands in a file, as with a queue that forgets what it has given."""

    def read(self, limit):
        given = int(Path("given").read_text()) if os.path.exists("given") else 0
        if given == 900:
            raise EndOfStream
        if given >= 500 and not os.path.exists("gate"):
            return []
        many = 5
        if os.path.exists("gate"):
            many = min(900 - given, 100)
        else:
            time.sleep(0.01)
        with open("given.new", "w") as file:
            file.write(str(given + many))
        os.replace("given.new", "given")
        return [(f"q{i % 7}", i) for i in range(given, given + many)]


class Tally(Bolt):
    def __init__(self):
        self.total = 0
        self.seen = []
        self.by_rest = {}

    def process(self, key, value):
        self.total += value
        self.seen = [*self.seen, value][-5:]
        self.by_rest = {**self.by_rest, value % 3: self.by_rest.get(value % 3, 0) + 1}

    def finish(self):
        self.emit(self.key, [self.total, list(self.seen), sorted(self.by_rest.items())])


class Slow(Bolt):
    def __init__(self):
        self.count = 0

    def process(self, key, value):
        if not os.path.exists("gate"):
            time.sleep(0.02)
        self.count += 1

    def finish(self):
        self.emit(self.key, self.count)


class One(Bolt):
    def __init__(self):
        self.most = {}

    def process(self, key, value):
        self.most[key] = max(value, self.most.get(key, 0))

    def finish(self):
        self.emit("most", sorted(self.most.items()))


class Batches(BatchBolt):
    def process_batch(self, rows):
        for key, value in rows:
            self.keyed[key] = self.keyed.get(key, 0) + value

    def finish(self):
        self.emit_batch(list(self.keyed.items()))


class Each(Bolt):
    """Every row, to a table."""

    def process(self, key, value):
        self.emit(key, value)


class InWindow(Bolt):
    def __init__(self):
        self.items = []

    def process(self, key, value):
        self.items = [*self.items, value]

    def finish(self):
        self.emit(self.key, [self.window.start, len(self.items), sum(self.items)])


class Words(Bolt):
    def __init__(self):
        self.count = 0

    def process(self, file, line):
        if not os.path.exists("gate"):
            time.sleep(0.005)
        self.count += 1

    def finish(self):
        self.emit(os.path.basename(self.key), self.count)


def topology(windows: bool = True, slow: bool = False, splits: bool = False) -> Topology:
    t = Topology("kept")
    numbers = t.spout("numbers", Numbers(), **({"time": float} if windows else {}))
    numbers.bolt("tally", Tally, grouping=by_key(), parallelism=2).sink("tallies", JsonLines("tallies.jsonl"))
    numbers.bolt("one", One, grouping=single()).sink("ones", JsonLines("ones.jsonl"))
    numbers.bolt("batches", Batches, grouping=by_key()).sink("sums", JsonLines("sums.jsonl"))
    if windows:
        from esault.windows import TumblingWindow

        numbers.window("windows", InWindow, TumblingWindow(900)).sink("windows-out", JsonLines("windows.jsonl"))
    once = t.spout("once", Once())
    once.bolt("each", Each, grouping=by_key()).sink("table", SparkTable("table", columns={"key": str, "value": int}))
    if slow:
        once.bolt("slow", Slow, grouping=by_key()).sink("slow-out", JsonLines("slow.jsonl"))
    if splits:
        from esault.sources import Directory

        lines = t.spout("lines", Directory("texts", every=None), parallelism=2)
        lines.bolt("words", Words, grouping=by_key()).sink("words-out", JsonLines("words.jsonl"))
    return t
