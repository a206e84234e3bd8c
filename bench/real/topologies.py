"""The work as the documentation tells users to write it for eSault: one function for each, files in, a sink of the user's own behind it.

Started as `esault run bench/real/topologies.py:NAME --set data=DIR --set out=DIR`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bench.real import functions
from bench.real.seen import Store
from esault import Bolt, Topology, by_key, shuffle
from esault.sinks import SparkTable
from esault.sources import JsonFiles, TextFiles
from esault.topology.context import Context
from esault.topology.sink import Row, Sink
from esault.topology.stream import Stream
from esault.windows import TumblingWindow

__all__ = ["chain", "files", "json_lines", "keys", "large", "steps", "waits", "windows", "words", "words_landed"]


class Kept(Sink):
    """Hands rows on as pairs."""

    def __init__(self, path: str, check: bool) -> None:
        self.path, self.check_rows = path, check

    def open(self, context: Context) -> None:
        self.store = Store(self.path, self.check_rows, str(context.sub_unit))

    def write(self, rows: Sequence[Row]) -> None:
        self.store.take([(row.key, row.value) for row in rows])

    def close(self) -> None:
        self.store.close()


class Split(Bolt):
    def process(self, key, value):
        for word in functions.words(value):
            self.emit(word, 1)


class Count(Bolt):
    """One object per key. Its attributes are that key's state, and move with it."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total = functions.count(self.total, value)
        self.emit(key, self.total)


def _counted(name: str, data: str) -> tuple[Topology, Stream]:
    t = Topology(name)
    listed = Path(data, "files.txt").read_text().splitlines()
    lines = t.spout("lines", TextFiles(listed, errors="replace"))
    return t, lines.bolt("split", Split, grouping=shuffle()).bolt("count", Count, grouping=by_key(), max_parallelism=8)


def words(data: str, out: str, check: bool = False) -> Topology:
    t, counts = _counted("real-words", data)
    counts.sink("kept", Kept(out, check))
    return t


def words_landed(data: str, out: str, check: bool = False) -> Topology:
    """As topologies/standard_library.py, which keeps one row for each word, with a row for every update."""
    t, counts = _counted("real-words-landed", data)
    counts.sink("table", SparkTable(out, columns={"word": str, "total": int}, mode="replace"))
    return t


def json_lines(data: str, out: str, check: bool = False) -> Topology:
    t = Topology("real-json")
    events = t.spout("lines", TextFiles(f"{data}/data/*.jsonl")).map(json.loads)
    users = events.filter(functions.is_paid).key_by(functions.by_user)
    users.reduce("spent", functions.spend, initial=(0, 0)).sink("kept", Kept(out, check))
    return t


def keys(data: str, out: str, check: bool = False) -> Topology:
    t = Topology("real-keys")
    lines = t.spout("lines", TextFiles(f"{data}/data/*.txt")).key_by(str)
    lines.bolt("count", Count, grouping=by_key()).sink("kept", Kept(out, check))
    return t


class Parse(Bolt):
    def process(self, key, value):
        self.emit(key, functions.CHAIN[0](value))


class AddOne(Bolt):
    def process(self, key, value):
        self.emit(key, functions.CHAIN[1](value))


class Double(Bolt):
    def process(self, key, value):
        self.emit(key, functions.CHAIN[2](value))


class MinusThree(Bolt):
    def process(self, key, value):
        self.emit(key, functions.CHAIN[3](value))


class LastDigits(Bolt):
    def process(self, key, value):
        self.emit(key, functions.CHAIN[4](value))


def chain(data: str, out: str, check: bool = False) -> Topology:
    t = Topology("real-chain")
    stream: Stream = t.spout("lines", TextFiles(f"{data}/data/*.txt"))
    for name, bolt in zip("abcde", (Parse, AddOne, Double, MinusThree, LastDigits)):
        stream = stream.bolt(name, bolt, grouping=shuffle())
    stream.sink("kept", Kept(out, check))
    return t


def steps(data: str, out: str, check: bool = False) -> Topology:
    t = Topology("real-steps")
    stream: Stream = t.spout("lines", TextFiles(f"{data}/data/*.txt"))
    for function in functions.CHAIN:
        stream = stream.map(function)
    stream.sink("kept", Kept(out, check))
    return t


class Revise(Bolt):
    def process(self, key, value):
        self.emit(key, functions.revise(value))


def large(data: str, out: str, check: bool = False) -> Topology:
    t = Topology("real-large")
    documents = t.spout("documents", TextFiles(f"{data}/data/*.txt")).key_by(functions.first_field)
    documents.bolt("revise", Revise, grouping=by_key()).sink("kept", Kept(out, check))
    return t


class Minute(Bolt):
    """One object per user and minute."""

    def __init__(self):
        self.total = (0, 0)

    def process(self, key, value):
        self.total = functions.minute_total(self.total, value)

    def finish(self):
        self.emit(self.key, (int(self.window.start), *self.total))


def windows(data: str, out: str, check: bool = False) -> Topology:
    t = Topology("real-windows")
    events = t.spout("events", JsonFiles(f"{data}/data/*.jsonl", key="user"), time=lambda value: value["at"])
    events.window("minute", Minute, TumblingWindow(60)).sink("kept", Kept(out, check))
    return t


class Wait(Bolt):
    def process(self, key, value):
        self.emit(key, functions.waited(value))


def waits(data: str, out: str, check: bool = False) -> Topology:
    t = Topology("real-waits")
    lines = t.spout("lines", TextFiles(f"{data}/data/*.txt"))
    lines.bolt("wait", Wait, grouping=shuffle(), parallelism=4).sink("kept", Kept(out, check))
    return t


class Sizes(Bolt):
    """Lines and characters of a file so far."""

    def __init__(self):
        self.lines = self.size = 0

    def process(self, key, value):
        self.lines += 1
        self.size += functions.length(value)
        self.emit(key, (self.lines, self.size))


def files(data: str, out: str, check: bool = False) -> Topology:
    t = Topology("real-files")
    lines = t.spout("lines", TextFiles(f"{data}/data/*.txt"))
    lines.bolt("sizes", Sizes, grouping=by_key()).sink("kept", Kept(out, check))
    return t
