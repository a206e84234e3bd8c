"""Runs whose disk is full for a while."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from test_checkpointed_runs import checkpoint_of

pytestmark = pytest.mark.slow
#: the disk is full while there is a file `full`
FULL = """
import errno
import os

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


class Full(JsonLines):
    def prepare(self, epoch):
        if os.path.exists("full"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out.jsonl")
        return super().prepare(epoch)


class Count(Bolt):
    total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


def topology(name="full"):
    t = Topology(name)
    spout = t.spout("numbers", Paced(Items([(f"k{i % 7}", 1) for i in range(2000)]), rate=500))
    spout.bolt("count", Count, grouping=by_key()).sink("out", Full("out.jsonl"))
    return t
"""


def test_a_disk_that_is_full_for_a_while_costs_restarts_and_each_tuple_counts_once(command, tmp_path):
    (tmp_path / "full.py").write_text(FULL)
    command.start(
        f"{tmp_path}/full.py:topology",
        "--checkpoint",
        "0.3",
        "--policy",
        "none",
        "--restart-strategy",
        "fixed-delay:attempts=1000,delay=0.2",
        "--report",
        "r.json",
    )
    command.running()
    command.until(lambda: checkpoint_of(command) >= 1)
    (tmp_path / "full").touch()
    command.until(lambda: command.status().get("restores", 0) >= 2)
    (tmp_path / "full").unlink()
    code, out, err = command.wait()
    assert code == 0, err
    assert "No space left on device (out.jsonl)" in err
    assert "restart 2 of 1000 in 0.2 s, all go back to checkpoint" in err
    assert "after transient errors" in out
    assert json.loads((tmp_path / "r.json").read_text())["restarts"] >= 2
    found = [(row["key"], row["value"]) for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())]
    assert len(found) == len(set(found)) == 2000
    assert Counter(key for key, _ in found) == Counter(f"k{i % 7}" for i in range(2000))
