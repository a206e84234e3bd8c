"""Bolts that call slow services: the default policy gives them what they need, and says why it does nothing more."""

from __future__ import annotations

import json
from pathlib import Path

import depth
import pytest
from test_live_changes import unit

pytestmark = pytest.mark.slow


def line_count(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.read_text().count("\n") for file in files if file.is_file() and file.suffix == ".jsonl")


@pytest.mark.parametrize(("seconds", "rate", "least"), depth.chosen([(0.1, 40.0, 5), (2.0, 3.0, 7)], [(0.1, 40.0, 5)]))
def test_a_slow_bolt_grows_until_it_keeps_up(command, tmp_path, seconds, rate, least):
    report = tmp_path / "report.json"
    command.start("calls", "--report", str(report), out="out.jsonl", seconds=seconds, rate=rate)
    command.running()
    command.until(lambda: unit(command, "call")["sub_units"] >= least)
    before = unit(command, "call")["tuples_in"]
    command.until(lambda: unit(command, "call")["tuples_in"] >= before + 20)
    command.until(lambda: any("no change" in line for line in command.status()["scaling"]))
    code, _, err = command.stop()
    assert code == 0, err
    told = json.loads(report.read_text())
    assert told["units"]["call"]["tuples_in"] == told["units"]["orders"]["tuples_out"]
    assert line_count(tmp_path / "out.jsonl") == told["units"]["orders"]["tuples_out"]
    first = next(d for d in told["decisions"] if d["what"].startswith("rescale"))
    assert first["policy"] == "auto"
