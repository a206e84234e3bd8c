"""A run within a budget, live: `auto` uses it up and no more, and says so."""

from __future__ import annotations

import json

import pytest
from test_live_changes import unit

pytestmark = pytest.mark.slow


def test_a_slow_bolt_grows_up_to_the_budget(command, tmp_path):
    report = tmp_path / "report.json"
    options = ("--budget", "4", "--report", str(report))
    command.start("calls", *options, out="out.jsonl", seconds=0.1, rate=40.0)
    command.running()
    told = "the budget of 4 is spent"
    command.until(lambda: any(told in line for line in command.status()["scaling"]))
    status = command.status()
    assert sum(each["sub_units"] for each in status["units"] if not each.get("chained_to")) == status["slots"] == 4
    assert status["free_slots"] == 0
    assert unit(command, "call")["sub_units"] > 1
    before = unit(command, "call")["tuples_in"]
    command.until(lambda: unit(command, "call")["tuples_in"] >= before + 120)  # a reason is written when it has stood
    code, _, err = command.stop()
    assert code == 0, err
    decisions = json.loads(report.read_text())["decisions"]
    assert any(d["what"].startswith("rescale") and d["outcome"] == "done" for d in decisions)
    assert any(told in d["reason"] and "would do for all units" in d["reason"] for d in decisions)
