"""Sources that several readers may share, and what keeps others at one."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from esault import Bolt, Topology, by_key, shuffle
from esault.sinks import JsonLines
from esault.sources import CsvFiles, Items, JsonFiles, Lines, TextFiles
from esault.topology.chaining import chain
from esault.topology.reading_order import readers, why_one_reader
from esault.topology.sink import Sink


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


ONE = "the sink 'out' opens or closes something, and does not ask context.sub_unit which of several it is"


class Own(Sink):
    def write(self, rows): ...


class OneFile(Own):
    def open(self, context):
        self.file = open("rows.txt", "w")  # noqa: SIM115


class Added(Own):
    def write(self, rows):
        with open("rows.txt", "a") as file:
            file.writelines(map(str, rows))


class Base(Own):
    def open(self, context):
        self.base = sqlite3.connect("rows.db")


class Each(Own):
    def open(self, context):
        self.file = open(f"rows-{context.sub_unit}.txt", "w")  # noqa: SIM115


class Written(Own):
    path = Path("rows.txt")

    def close(self):
        self.path.write_text("all")


SEEN: set[str] = set()


def is_new(value):
    SEEN.add(value)
    return True


def why(build, source=None):
    t = Topology("t")
    build(t.spout("lines", source or TextFiles("*.txt")))
    plan = chain(t.plan())
    return why_one_reader(plan, plan.units["lines"])


@pytest.mark.parametrize(
    "build",
    [
        lambda lines: lines.sink("out", Own()),
        lambda lines: lines.map(json.loads).filter(bool).flat_map(list).sink("out", JsonLines("out.jsonl")),
        lambda lines: lines.bolt("a", Pass, shuffle()).bolt("b", Pass, shuffle()).sink("out", Own()),
        # What shuffle() deals out has no order any more.
        lambda lines: lines.key_by(len).bolt("a", Pass, shuffle()).sink("out", Own()),
        lambda lines: lines.sink("out", Each()),
    ],
)
def test_files_are_shared_where_each_line_keeps_the_name_of_its_file(build):
    assert why(build) is None


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (
            lambda lines: lines.key_by(len).sink("out", Own()),
            "rows of several files have one key in the sink 'out', which gets them in order",
        ),
        (
            lambda lines: lines.bolt("a", Pass, shuffle()).key_by(len).sink("out", Own()),
            "rows of several files have one key in the sink 'out', which gets them in order",
        ),
        (lambda lines: lines.bolt("count", Pass, by_key()).sink("out", Own()), "'count' runs in processes of its own"),
        (lambda lines: lines.sink("out", OneFile()), ONE),
        (lambda lines: lines.sink("out", Written()), ONE),
        (lambda lines: lines.sink("out", Added()), ONE),
        (lambda lines: lines.sink("out", Base()), ONE),
        (lambda lines: lines.filter(is_new).sink("out", Own()), "a function changes what stands outside it"),
    ],
)
def test_one_reader_is_kept_where_order_or_something_shared_depends_on_it(build, reason):
    assert why(build) == reason


def test_two_ways_out_are_both_looked_at():
    def build(lines):
        lines.sink("plain", Own())
        lines.key_by(len).sink("keyed", Own())

    assert why(build) == "rows of several files have one key in the sink 'keyed', which gets them in order"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (JsonFiles("*.jsonl"), None),
        (
            JsonFiles("*.jsonl", key="user"),
            "rows of several files have one key in the sink 'out', which gets them in order",
        ),
        # Different splits have no order.
        (CsvFiles("*.csv", key="user"), None),
        (Lines(), "it has one reader"),
    ],
)
def test_the_source_says_what_its_keys_are(source, reason):
    assert why(lambda lines: lines.sink("out", Own()), source) == reason


@pytest.mark.parametrize(
    ("said", "reason"),
    [({"parallelism": 2}, "parallelism is said: 2"), ({"max_parallelism": 1}, "max_parallelism is 1")],
)
def test_what_the_topology_says_counts(said, reason):
    t = Topology("t")
    t.spout("lines", TextFiles("*.txt"), **said).sink("out", Own())
    plan = t.plan()
    assert why_one_reader(plan, plan.units["lines"]) == reason


def test_a_line_says_of_each_source_of_files_what_it_will_have():
    t = Topology("t")
    t.spout("lines", TextFiles("*.txt")).bolt("pass", Pass, shuffle()).sink("out", Own())
    t.spout("users", JsonFiles("*.jsonl")).bolt("count", Pass, by_key())
    t.spout("items", Items([])).sink("some", Own())
    assert readers(t.plan()) == [
        "readers: lines has one for each core, if files are large",
        "readers: users has one ('count' runs in processes of its own)",
    ]
