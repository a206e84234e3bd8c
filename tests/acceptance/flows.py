"""Topologies that the acceptance tests run in processes of their own."""

import logging
import os
import time

import numpy as np
import pyarrow as pa

from esault import BatchBolt, Bolt, Columns, EndOfStream, Spout, Topology, by_key, shuffle, skip
from esault.sinks import Collect, JsonLines, SparkTable
from esault.sources import Items, Lines, Paced, TextFiles


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


class Numbers(Spout):
    """Whole numbers as keys, and their halves, as arrays: `rate` a second, until there is a file `end`."""

    def __init__(self, end, rate):
        self.next, self.end, self.rate = 0, end, rate

    def open(self, context):
        self.begun = time.monotonic()

    def read(self, limit):
        if os.path.exists(self.end):
            raise EndOfStream
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
        kinds = f"{type(keys).__name__} {type(values).__name__}"
        if kinds not in self.seen:
            self.seen.add(kinds)
            self.emit_batch([(kinds, 0.0)], stream="kinds")
        keys, places = np.unique(np.asarray(keys), return_inverse=True)
        for key, value in zip(keys.tolist(), np.bincount(places, np.asarray(values)).tolist()):
            self.keyed[key] = self.keyed.get(key, 0.0) + value

    def finish(self):
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


def words(name: str, path: str, out: str = "", p: int = 1, rate: float = 0.0, most: int = 0) -> Topology:
    t = Topology(name)
    source = TextFiles(path)
    lines = t.spout("lines", Paced(source, rate) if rate else source)
    count = lines.bolt("split", Split, grouping=shuffle(), parallelism=p).bolt(
        "count", Count, grouping=by_key(), parallelism=p, max_parallelism=most or None
    )
    if out:
        count.sink("table", SparkTable(out, columns={"word": str, "total": int}, mode="replace"))
    else:
        count.sink("table", Collect())
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


def endless(name: str) -> Topology:
    t = Topology(name)
    t.spout("numbers", Endless()).bolt("worker", Count, grouping=by_key()).sink("rows", Collect())
    return t


def of_spout(name: str, spout: str) -> Topology:
    t = Topology(name)
    t.spout("numbers", globals()[spout]()).sink("rows", Collect())
    return t


def stdin(name: str, out: str) -> Topology:
    t = Topology(name)
    t.spout("lines", Lines()).sink("out", JsonLines(out, mode="replace"))
    return t
