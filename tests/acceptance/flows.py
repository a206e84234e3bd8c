"""Topologies that the acceptance tests run in processes of their own.

What few of them need is imported by these: numpy and pyarrow take a third of a second of each run.
"""

import asyncio
import logging
import os
import signal
import sys
import time
from itertools import count

from esault import BatchBolt, Bolt, Columns, EndOfStream, Spout, Topology, by_key, shuffle, skip
from esault.sinks import Collect, JsonLines, SparkTable
from esault.sources import Items, Lines, MicroBatches, Paced, TcpLines, TextFiles


class Split(Bolt):
    def process(self, key, value):
        for word in value.split():
            self.emit(word, 1)


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


class Tally(Count):
    """Says at the end how often each word came."""

    def finish(self):
        self.emit(self.key, self.total, stream="totals")


class Talking(Bolt):
    def open(self, context):
        logging.getLogger("mine").warning("logged by the user")

    def process(self, key, value):
        print("printed by the user")
        self.emit(key, value)


class Boom(Bolt):
    def process(self, key, value):
        if value == 7:
            raise ValueError("seven is too much")
        self.emit(key, value)


class Stuck(Bolt):
    def process(self, key, value):
        time.sleep(60)


class Dies(Bolt):
    def process(self, key, value):
        os._exit(3)


class Crashes(Bolt):
    def process(self, key, value):
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(60)  # another thread may take it, and this one goes on for a moment


class Leaves(Bolt):
    def process(self, key, value):
        sys.exit()


class LeavesInTheEnd(Count):
    def finish(self):
        sys.exit("no more")


class WaitingCount(Count):
    """Counts across a wait: for time, or for another thread, which wakes the data loop as a socket does."""

    async def process(self, key, value):
        before = self.total
        if value % 2:
            await asyncio.sleep(0.005)
        else:
            await asyncio.to_thread(time.sleep, 0.001)
        self.total = before + 1
        self.emit(key, self.total)


class Numbers(Spout):
    """Whole numbers as keys, and their halves, as arrays: `rate` a second, until there is a file `end`."""

    def __init__(self, end, rate):
        self.next, self.end, self.rate = 0, end, rate

    def open(self, context):
        self.begun = time.monotonic()

    def read(self, limit):
        if os.path.exists(self.end):
            raise EndOfStream
        import numpy as np

        due = int((time.monotonic() - self.begun) * self.rate)
        numbers = np.arange(self.next, max(self.next, min(due, self.next + limit)))
        self.next += len(numbers)
        return Columns(numbers % 1000, numbers * 0.5)

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class Sums(BatchBolt):
    """The sum of each key, said at the end; which kinds of columns came is said at once."""

    def open(self, context):
        self.seen = set()

    def process_columns(self, keys, values):
        import numpy as np

        kinds = f"{type(keys).__name__} {type(values).__name__}"
        if kinds not in self.seen:
            self.seen.add(kinds)
            self.emit_batch([(kinds, 0.0)], stream="kinds")
        keys, places = np.unique(np.asarray(keys), return_inverse=True)
        for key, value in zip(keys.tolist(), np.bincount(places, np.asarray(values)).tolist()):
            self.keyed[key] = self.keyed.get(key, 0.0) + value

    def finish(self):
        import pyarrow as pa

        self.emit_columns(pa.array(list(self.keyed)), pa.array(list(self.keyed.values())))


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, (type(key).__name__, value))


class Endless(Spout):
    def __init__(self):
        self.next = 0

    def read(self, limit):
        self.next += 1
        return [(self.next, self.next)]


class Never(Spout):
    def read(self, limit):
        return None


class Once(Spout):
    def __init__(self):
        self.done = False

    def read(self, limit):
        if self.done:
            raise EndOfStream
        self.done = True
        return [(i, i) for i in range(10)]


def words(name: str, path: str, out: str = "", p: int = 1, rate: float = 0.0, most: int = 0, go: str = "") -> Topology:
    """With `go`, the stream stands still after two seconds until there is such a file."""
    t = Topology(name)
    source = TextFiles(path)
    pace = (lambda s: rate if s < 2.0 or os.path.exists(go) else 0.0) if go else rate
    lines = t.spout("lines", Paced(source, pace) if rate else source)
    count = lines.bolt("split", Split, grouping=shuffle(), parallelism=p).bolt(
        "count", Count, grouping=by_key(), parallelism=p, max_parallelism=most or None
    )
    if out:
        count.sink("table", SparkTable(out, columns={"word": str, "total": int}, mode="replace"))
    else:
        count.sink("table", Collect())
    return t


def twins(name: str, path: str, out: str, p: int = 1, rate: float = 0.0) -> Topology:
    """A word count with two copies of the counting bolt, and the totals that each key ends with."""
    t = Topology(name)
    source = TextFiles(path)
    lines = t.spout("lines", Paced(source, rate) if rate else source)
    split = lines.bolt("split", Split, grouping=shuffle(), parallelism=2)
    count = split.bolt("count", Tally, grouping=by_key(), parallelism=p, replicas=2, streams=("totals",))
    count.sink("table", SparkTable(out, columns={"word": str, "total": int}, mode="replace"))
    count["totals"].sink("totals", JsonLines(f"{out}.totals"))
    return t


def counted(name: str, path: str, out: str, p: int = 1, rate: float = 0.0) -> Topology:
    """Every count of every word, as a line of its own."""
    t = Topology(name)
    source = TextFiles(path)
    lines = t.spout("lines", Paced(source, rate) if rate else source)
    split = lines.bolt("split", Split, grouping=shuffle(), parallelism=2)
    split.bolt("count", Count, grouping=by_key(), parallelism=p).sink("out", JsonLines(out))
    return t


def sums(name: str, end: str, out: str, rate: float, p: int = 1) -> Topology:
    """Arrays into keyed sums, and on to a bolt of rows."""
    t = Topology(name)
    total = t.spout("numbers", Numbers(end, rate)).bolt(
        "sum", Sums, grouping=by_key(), parallelism=p, streams=("kinds",)
    )
    total.bolt("same", Same, grouping=by_key(), parallelism=2).sink("out", JsonLines(out))
    total["kinds"].sink("kinds", JsonLines(out + ".kinds"))
    return t


def counted_stdin(name: str, out: str) -> Topology:
    t = Topology(name)
    split = t.spout("lines", Lines()).bolt("split", Split, grouping=shuffle())
    split.bolt("count", Count, grouping=by_key(), parallelism=2).sink("out", JsonLines(out))
    return t


def lines_out(name: str, path: str, out: str, mode: str = "error", rate: float = 0.0) -> Topology:
    t = Topology(name)
    source = TextFiles(path)
    t.spout("lines", Paced(source, rate) if rate else source).sink("out", JsonLines(out, mode=mode))
    return t


def of_bolt(name: str, bolt: str, n: int = 10) -> Topology:
    t = Topology(name)
    numbers = t.spout("numbers", Items([(i, i) for i in range(n)]))
    numbers.bolt("worker", globals()[bolt], grouping=by_key()).sink("rows", Collect())
    return t


def skipping(name: str) -> Topology:
    t = Topology(name)
    numbers = t.spout("numbers", Items([(i, i) for i in range(10)]))
    numbers.bolt("worker", Boom, grouping=by_key(), on_error=skip()).sink("rows", Collect())
    return t


def endless(name: str, rate: float = 0.0) -> Topology:
    """As fast as can be, or so many a second."""
    t = Topology(name)
    t.spout("numbers", Paced(Endless(), rate) if rate else Endless()).bolt("worker", Count, grouping=by_key()).sink(
        "rows", Collect()
    )
    return t


def of_spout(name: str, spout: str) -> Topology:
    t = Topology(name)
    t.spout("numbers", globals()[spout]()).sink("rows", Collect())
    return t


def stdin(name: str, out: str) -> Topology:
    t = Topology(name)
    t.spout("lines", Lines()).sink("out", JsonLines(out, mode="replace"))
    return t


class Slow(Bolt):
    """A millisecond each, slept, so that it is slow on any machine."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        time.sleep(0.001)
        self.total += 1
        self.emit(key, (self.total, value))


def _numbered():
    return ((f"k{i % 50}", i) for i in count())


def overflowing(name: str, out: str, rate: float, buffer: int = 200) -> Topology:
    """Numbers without end, more a second than a bounded inbox and its bolt can take."""
    t = Topology(name)
    numbers = t.spout("numbers", Paced(Items(_numbered), rate))
    slow = numbers.bolt("slow", Slow, grouping=by_key(), buffer=buffer, overflow="drop")
    slow.sink("table", SparkTable(out, columns={"key": str, "total": int, "n": int}, mode="replace"))
    return t


class Sleepy(Bolt):
    def process(self, key, value):
        time.sleep(0.004)
        self.emit(key, value)


def windows(name: str = "windows", out: str = "table", rows: int = 3000, go: str = "") -> Topology:
    """100, 400 and 200 tuples a second in turn, a second each, in windows of three. With `go` it stands still as `words` does, after six seconds."""
    t = Topology(name)
    pace = lambda s: (100, 400, 200)[int(s) % 3] if not go or s < 6.0 or os.path.exists(go) else 0.0
    paced = Paced(Items([(f"k{i % 200}", i) for i in range(rows)]), pace)
    work = t.spout("load", MicroBatches(paced, 3.0, 0.1)).bolt("work", Sleepy, grouping=by_key(), parallelism=2)
    work.sink("table", SparkTable(out, columns={"key": str, "number": int}))
    return t


class CallsFor(Bolt):
    """So many seconds each, slept, as who calls a service that is far away."""

    def process(self, key, value):
        time.sleep(value)
        self.emit(key, value)


def calls(name: str, out: str, seconds: float, rate: float, rows: int = 100_000) -> Topology:
    t = Topology(name)
    orders = t.spout("orders", Paced(Items([(f"k{i % 300}", seconds) for i in range(rows)]), rate))
    orders.bolt("call", CallsFor, grouping=by_key(), max_parallelism=8).sink("rows", JsonLines(out))
    return t


def followed_tallies(name: str, path: str, out: str) -> Topology:
    """Words of files that grow."""
    t = Topology(name)
    words = t.spout("lines", TextFiles(path, follow=True)).bolt("split", Split, grouping=shuffle())
    words.bolt("tally", Count, grouping=by_key()).sink("rows", JsonLines(out))
    return t


def served_tallies(name: str, out: str) -> Topology:
    """Words of who connects."""
    t = Topology(name)
    words = t.spout("lines", TcpLines("127.0.0.1", 0, listen=True)).bolt("split", Split, grouping=shuffle())
    words.bolt("tally", Count, grouping=by_key()).sink("rows", JsonLines(out))
    return t


class SlowTally(Bolt):
    """Counts, and takes its time for it."""

    def __init__(self):
        self.n = 0

    def process(self, key, value):
        time.sleep(value)
        self.n += 1
        self.emit(key, self.n)


def tallied(name: str, out: str, seconds: float, rate: float, rows: int = 100_000) -> Topology:
    t = Topology(name)
    orders = t.spout("orders", Paced(Items([(f"k{i % 300}", seconds) for i in range(rows)]), rate))
    orders.bolt("tally", SlowTally, grouping=by_key()).sink("rows", JsonLines(out))
    return t


def waiting(name: str = "waiting", out: str = "out", rows: int = 6000, rate: float = 1500.0):
    t = Topology(name)
    numbers = t.spout("numbers", Paced(Items([(f"k{i % 50}", i) for i in range(rows)]), rate=rate))
    count = numbers.bolt("count", WaitingCount, grouping=by_key(), concurrency=16, max_parallelism=4)
    count.sink("rows", JsonLines(out))
    return t


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def passed(name: str, path: str, out: str, gate: str, rate: float, p: int = 2) -> Topology:
    """Lines through a bolt without state."""
    t = Topology(name)
    lines = t.spout("lines", Gated(path, gate, rate))
    lines.bolt("pass", Pass, grouping=shuffle(), parallelism=p).sink("out", JsonLines(out))
    return t


class Gated(Spout):
    """The lines of a file, `rate` a second. The last hundred come once there is a file `gate`, as all that is left: no run ends before a
    test lets it, and none goes on for long behind that."""

    def __init__(self, path, gate, rate):
        self.path, self.gate, self.rate = path, gate, rate
        self.next = 0

    def open(self, context):
        with open(self.path) as file:
            self.lines = file.read().splitlines()
        self.begun = time.monotonic() - self.next / self.rate

    def read(self, limit):
        if self.next == len(self.lines):
            raise EndOfStream
        end = self.next + limit
        if not os.path.exists(self.gate):
            end = min(end, len(self.lines) - 100, int((time.monotonic() - self.begun) * self.rate))
        end = max(self.next, min(end, len(self.lines)))
        rows = [(i, self.lines[i]) for i in range(self.next, end)]
        self.next = end
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


def gated(name: str, path: str, out: str, gate: str, rate: float, p: int = 1, splits: int = 2) -> Topology:
    """As `counted`, of lines that end when a test lets them."""
    t = Topology(name)
    split = t.spout("lines", Gated(path, gate, rate)).bolt("split", Split, grouping=shuffle(), parallelism=splits)
    split.bolt("count", Count, grouping=by_key(), parallelism=p).sink("out", JsonLines(out))
    return t


def every_kind(name: str, n: int, out: str, gate: str = "", rate: float = 0.0, p: int = 2) -> Topology:
    """A bolt for each kind of state."""
    from every_kind import every_kind as of_module

    return of_module(name, n, rate, gate, out, p)
