"""A spout that cannot seek, and a sink of the user's own: CSV parts that get their names when they are committed."""

import csv
import random
import time
from pathlib import Path

from esault import Bolt, EndOfStream, Sink, Spout, Topology, by_key
from esault.sources import Paced


class Beats(Spout):
    """As from a socket: what was read is gone."""

    def __init__(self, n):
        self.left, self.rng = n, random.Random(29)

    def read(self, limit):
        if not self.left:
            raise EndOfStream
        n = min(limit, self.left)
        self.left -= n
        return [(f"m{self.rng.randrange(9)}", self.rng.randrange(100)) for _ in range(n)]


class Parts(Sink):
    """One file for each commit."""

    def __init__(self, folder):
        self.folder = folder

    def open(self, context):
        self.name, self.rows, self.count = f"{context.unit}-{context.sub_unit}-{time.time_ns()}", [], 0
        Path(self.folder).mkdir(parents=True, exist_ok=True)

    def write(self, rows):
        self.rows += [(row.key, *row.value) for row in rows]

    def prepare(self, epoch):
        if not self.rows:
            return None
        self.count += 1
        path = Path(self.folder, f"{self.name}-{self.count}.part")
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(self.rows)
        self.rows = []
        return str(path)

    def commit(self, epoch, handle):
        if handle is not None and Path(handle).exists():
            Path(handle).rename(Path(handle).with_suffix(".csv"))


class Rhythm(Bolt):
    def __init__(self):
        self.beats = 0
        self.last_two = [None, None]

    def process(self, key, value):
        self.beats += 1
        self.last_two = [self.last_two[1], value]
        self.emit(key, (self.beats, sum(x or 0 for x in self.last_two)))


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("heartbeat")
    t.spout("beats", Paced(Beats(size), rate)).bolt("rhythm", Rhythm, by_key()).sink("rhythms", Parts(f"{out}/rhythms"))
    return t


def written(folder, sink):
    found = []
    for path in Path(folder, sink).glob("*.csv"):
        with path.open(newline="") as file:
            found += [(key, (int(beats), int(two))) for key, beats, two in csv.reader(file)]
    return found


def expected(size):
    rng, seen, rows = random.Random(29), {}, []
    for _ in range(size):
        key, beat = f"m{rng.randrange(9)}", rng.randrange(100)
        mine = seen.setdefault(key, [])
        mine.append(beat)
        rows.append((key, (len(mine), sum(mine[-2:]))))
    return {"rhythms": rows}
