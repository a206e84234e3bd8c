"""User code that does not return: the run says where it is, and with a timeout replaces the process."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow
#: the first process that comes to the number 500 waits for ever
STUCK = """
import os
import time

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


class Count(Bolt):
    total = 0

    def process(self, key, value):
        if value == 500 and not os.path.exists("was-here"):
            open("was-here", "w").close()
            self.ask()
        self.total += 1
        self.emit(key, value)

    def ask(self):
        while True:
            time.sleep(0.1)


def topology(name="stuck"):
    t = Topology(name)
    spout = t.spout("numbers", Paced(Items([(f"k{i % 7}", i) for i in range(1000)]), rate=2000))
    spout.bolt("count", Count, grouping=by_key()).sink("out", JsonLines("out.jsonl"))
    return t
"""


def test_a_call_that_does_not_return_is_said_and_its_process_replaced(command, tmp_path):
    (tmp_path / "stuck.py").write_text(STUCK)
    options = ("--checkpoint", "0.2", "--policy", "none", "--heartbeat-timeout", "1.5", "--report", "r.json")
    code, out, err = command.run(f"{tmp_path}/stuck.py:topology", *options)
    assert code == 0, err
    line = STUCK[: STUCK.index("time.sleep")].count("\n") + 1
    assert f"for 0.75 s: it is in ask, stuck.py:{line}" in err
    assert "is ended and replaced: no word for 2 s" in err
    assert "it was replaced" in out
    (missed,) = json.loads((tmp_path / "r.json").read_text())["missed_heartbeats"]
    assert (missed["unit"], missed["replaced"]) == ("count", True)
    assert "in process" in missed["threads"]
    rows = [json.loads(each)["value"] for each in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted(rows) == list(range(1000))
