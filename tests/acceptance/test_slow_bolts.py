"""Bolts that take their time for each tuple, with checkpoints: these are complete in seconds, and each tuple counts once."""

from __future__ import annotations

import json
import signal
from collections import Counter

import pytest
from test_checkpointed_runs import checkpoint_of

pytestmark = pytest.mark.slow
ROWS, KEYS = 240, 7
SLOW = """
import time

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items


class Slow(Bolt):
    total = 0

    def process(self, key, value):
        time.sleep(0.03)
        self.total += value
        self.emit(key, self.total)


def topology(name="slowly", rows=240, p=1):
    t = Topology(name)
    spout = t.spout("numbers", Items([(f"k{i % 7}", 1) for i in range(rows)]))
    spout.bolt("slow", Slow, grouping=by_key(), parallelism=p).sink("out", JsonLines("out.jsonl"))
    return t
"""


def test_checkpoints_hold_what_waits_and_whoever_dies_each_tuple_counts_once(command, tmp_path):
    (tmp_path / "slowly.py").write_text(SLOW)
    place = f"{tmp_path}/slowly.py:topology"
    options = ("--checkpoint", "0.2", "--aligned-checkpoint-timeout", "0.1", "--policy", "none")
    command.start(place, *options)
    command.running()
    command.until(lambda: checkpoint_of(command) >= 2)
    command.processes("slow/")[0].kill()
    command.until(lambda: command.status().get("restores") == 1)
    back = checkpoint_of(command)
    command.until(lambda: checkpoint_of(command) > back)
    manifest = max((tmp_path / ".esault" / command.name).glob("checkpoint-*.json"))
    assert json.loads(manifest.read_text().splitlines()[0])["units"]["slow"]["in_flight"]
    command.process.send_signal(signal.SIGKILL)
    command.process.communicate()
    command.until(lambda: command.processes() == [])
    code, out, err = command.run(place, *options, "--resume", "--parallelism", "slow=2", "--report", "r.json")
    assert code == 0, err
    found = [(row["key"], row["value"]) for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())]
    assert len(found) == len(set(found)) == ROWS
    assert Counter(key for key, _ in found) == Counter(f"k{i % KEYS}" for i in range(ROWS))
    assert json.loads((tmp_path / "r.json").read_text())["checkpoints"]["unaligned"] > 0
    assert "with rows in flight" in out
