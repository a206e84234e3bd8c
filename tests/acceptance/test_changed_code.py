"""`--resume` with another version of the code: what a class has today is what its objects have, and what is left out is said."""

from __future__ import annotations

import json
import signal
import subprocess
import tarfile
import time
from collections import Counter
from pathlib import Path

import esault_command
import pytest

pytestmark = pytest.mark.slow
HERE = Path(__file__).with_name("written_by_0_1")


def esault(folder, *arguments, timeout=200):
    return esault_command.run("run", *arguments, "--plain", "--policy", "none", cwd=folder, timeout=timeout)


def rows(path):
    return [(row["key"], row["value"]) for row in map(json.loads, path.read_text().splitlines())]


def test_a_checkpoint_of_0_1_goes_on_with_containers_of_the_types_that_the_code_says(tmp_path):
    with tarfile.open(HERE / "state.tar.gz") as kept:
        kept.extractall(tmp_path)
    code = (HERE / "kept.py").read_text()
    for before, now in (
        ("self.seen = [*self.seen, value][-5:]", "self.seen.append(value); del self.seen[:-5]"),
        (
            "self.by_rest = {**self.by_rest, value % 3: self.by_rest.get(value % 3, 0) + 1}",
            "self.by_rest[value % 3] += 1",
        ),
        ("self.items = [*self.items, value]", "self.items.append(value)"),
    ):
        assert before in code
        code = code.replace(before, now)
    (tmp_path / "kept.py").write_text(code)
    code, out, err = esault(
        tmp_path, "kept.py", "--checkpoint", "0.3", "--resume", "--set", "rate=0", "--parallelism", "tally=3"
    )
    assert code == 0, err
    assert "numbers: 4,000 out" not in out  # it went on, and did not begin anew
    keys = {f"k{k}": [i for i in range(4000) if i % 9 == k] for k in range(9)}
    tallies = dict(rows(tmp_path / "tallies.jsonl"))
    assert tallies == {
        key: [sum(values), values[-5:], [list(pair) for pair in sorted(Counter(i % 3 for i in values).items())]]
        for key, values in keys.items()
    }
    assert rows(tmp_path / "ones.jsonl") == [("most", [[key, max(values)] for key, values in sorted(keys.items())])]
    assert dict(rows(tmp_path / "sums.jsonl")) == {key: sum(values) for key, values in keys.items()}
    windows = [
        (key, [start, len(part), sum(part)])
        for key, values in keys.items()
        for start in range(0, 4000, 900)
        if (part := [i for i in values if start <= i < start + 900])
    ]
    assert sorted(rows(tmp_path / "windows.jsonl")) == sorted(windows)


VERSION = """
import os, time
from dataclasses import dataclass, field
from esault import Bolt, EndOfStream, Spout, Topology, by_key
from esault.sinks import JsonLines

class Numbers(Spout):
    def __init__(self):
        self.next = 0
    def read(self, limit):
        if self.next >= 3000:
            raise EndOfStream
        if self.next >= 1000 and not os.path.exists("gate"):
            return []
        time.sleep(0.02)
        rows = [(f"k{i % 10}", i) for i in range(self.next, self.next + 50)]
        self.next += 50
        return rows
    def position(self):
        return self.next
    def seek(self, position):
        self.next = position

@dataclass
class OrderBook:
    count: int = 0
    oldest: int = -1

class Tally(Bolt):
    def __init__(self):
        self.book = OrderBook()
        self.gone = "x"
    def process(self, key, value):
        self.gone += "x"
        self.book.count += 1
        self.book.oldest = value
    def finish(self):
        self.emit(self.key, [self.book.count])

def topology():
    t = Topology("books")
    t.spout("numbers", Numbers()).bolt("tally", Tally, grouping=by_key()).sink("out", JsonLines("out.jsonl", mode="replace"))
    return t
"""


def started(folder, seconds=60.0):
    """A run that is killed once it has two checkpoints, all of it."""
    process = esault_command.start(
        "run", "books.py", "--checkpoint", "0.3", "--plain", "--policy", "none",
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, session=True,
    )  # fmt: skip
    until = time.monotonic() + seconds
    while not any(int(path.stem[-8:]) >= 4 for path in (folder / ".esault" / "books").glob("checkpoint-*.json")):
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_topology_unit_and_class_may_have_other_names_and_what_is_gone_is_said(tmp_path):
    (tmp_path / "books.py").write_text(VERSION)
    started(tmp_path)
    (tmp_path / "gate").touch()
    now = (
        VERSION.replace(
            'Topology("books")',
            'Topology("ledger", moved={"books": "ledger", "tally": "sums", "books.OrderBook": Book})',
        )
        .replace('"tally"', '"sums"', 1)
        .replace("OrderBook", "Book")
        .replace('"books.Book"', '"books.OrderBook"')
        .replace("    oldest: int = -1\n", "    newest: list = field(default_factory=list)\n")
        .replace("self.book.oldest = value", "self.book.newest.append(value)")
        .replace('        self.gone = "x"\n', "")
        .replace('        self.gone += "x"\n', "")
        .replace("[self.book.count]", "[self.book.count, len(self.book.newest)]")
    )
    now = now.replace('bolt("tally"', 'bolt("sums"').replace('"sums": "sums"', '"tally": "sums"')
    (tmp_path / "books.py").write_text(now)
    code, out, err = esault(tmp_path, "books.py", "--checkpoint", "0.3", "--resume")
    assert code == 0, err
    said = out + err
    assert "unit 'sums': attribute 'gone' of Tally is in the state of 10 keys and no attribute of it any more" in said
    assert "unit 'sums': attribute 'oldest' of OrderBook is in the state of 10 objects" in said
    found = dict(rows(tmp_path / "out.jsonl"))
    assert {key: value[0] for key, value in found.items()} == {f"k{i}": 300 for i in range(10)}
    assert all(0 < value[1] < 300 for value in found.values())  # what came after the checkpoint


def test_a_renamed_topology_without_a_word_about_it_never_empties_a_table(tmp_path):
    (tmp_path / "books.py").write_text(VERSION)
    started(tmp_path)
    (tmp_path / "out.jsonl").write_text('{"key": "k1", "value": [7]}\n')
    (tmp_path / "gate").touch()
    (tmp_path / "books.py").write_text(VERSION.replace('Topology("books")', 'Topology("ledger")'))
    code, _, err = esault(tmp_path, "books.py", "--checkpoint", "0.3", "--resume")
    assert code == 2, err
    assert "would empty out.jsonl, which sink 'out' replaces" in err
    assert "moved=" in err
    assert rows(tmp_path / "out.jsonl") == [("k1", [7])]


def test_a_class_that_is_gone_is_named_with_the_remedy(tmp_path):
    (tmp_path / "books.py").write_text(VERSION)
    started(tmp_path)
    (tmp_path / "gate").touch()
    (tmp_path / "books.py").write_text(VERSION.replace("OrderBook", "Book"))
    code, _, err = esault(tmp_path, "books.py", "--checkpoint", "0.3", "--resume")
    assert code == 1
    assert "books has no OrderBook here; if it was renamed, say Topology(..., moved={'books.OrderBook'" in err
