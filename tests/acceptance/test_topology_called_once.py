"""The topology function is called once for a run, and once in each process where processes must not share what it made."""

from __future__ import annotations

import json
import os
import sqlite3

import pytest

pytestmark = pytest.mark.slow

CODE = """
import os
import sqlite3
from pathlib import Path

from esault import Bolt, Sink, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


class Rows(Sink):
    def __init__(self, connection):
        self.connection = connection

    def write(self, rows):
        self.connection.executemany("insert into totals values (?, ?, ?)", [(r.key, r.value, os.getpid()) for r in rows])
        self.connection.commit()


def called():
    with open("calls", "a") as calls:
        calls.write(f"{os.getpid()}\\n")


def rows():
    return [(i % 7, 1) for i in range(3000)]


def plain(name, p: int = 1):
    called()
    t = Topology(name)
    lines = t.spout("rows", Paced(Items(rows), 1000))
    lines.bolt("count", Count, grouping=by_key(), parallelism=p).sink("out", JsonLines("out.jsonl"))
    return t


def connected(name, p: int = 1):
    called()
    connection = sqlite3.connect("out.db", timeout=30, check_same_thread=False)
    connection.execute("create table if not exists totals (key, total, pid)")
    t = Topology(name)
    lines = t.spout("rows", Items(rows))
    lines.bolt("count", Count, grouping=by_key(), parallelism=p).sink("out", Rows(connection))
    return t
"""


def called(folder):
    return [int(line) for line in (folder / "calls").read_text().split()]


def test_it_is_called_once_also_for_processes_that_come_later(command, tmp_path):
    (tmp_path / "counts.py").write_text(CODE)
    command.start("counts.py:plain", "--policy", "none", "--checkpoint", "0.2")
    command.until(lambda: command.scaled("count", 3))
    command.until(lambda: len(command.processes("count/")) == 3)
    os.kill(command.processes("count/")[0].pid, 9)
    code, _, err = command.wait()
    assert code == 0, err
    most = {}
    for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines()):
        most[row["key"]] = max(most.get(row["key"], 0), row["value"])
    assert sum(most.values()) == 3000
    assert set(called(tmp_path)[:1]) == {command.process.pid}
    # a process that lives on becomes the sub-unit that goes back to the checkpoint: what it has used is built anew
    assert len(called(tmp_path)) == len(set(called(tmp_path)))


def test_a_connection_is_not_shared(command, tmp_path):
    (tmp_path / "counts.py").write_text(CODE)
    code, _, err = command.run("counts.py:connected", "--policy", "none", p=3)
    assert code == 0, err
    connection = sqlite3.connect(tmp_path / "out.db")
    rows = connection.execute(
        "select key, max(total), count(*), count(distinct pid) from totals group by key"
    ).fetchall()
    pids = connection.execute("select count(distinct pid) from totals").fetchone()[0]
    connection.close()
    assert sum(most for _, most, _, _ in rows) == 3000
    assert sum(n for _, _, n, _ in rows) == 3000
    assert pids == 3
    # the command, the driver, the spout and three sub-units of the bolt
    assert len(called(tmp_path)) == len(set(called(tmp_path))) == 6
