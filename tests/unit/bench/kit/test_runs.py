"""Runs that add up: each seed counts once, whatever was kept of a run that was cut short."""

from __future__ import annotations

import json

import pytest

from bench.kit.runs import Runs


def test_runs_add_up_and_a_run_that_goes_on_counts_once(tmp_path):
    folder = str(tmp_path / "total")
    first = Runs(folder, "simulation")
    assert first.next_seed == 1
    first.keep(1, 4, {"faults": 10, "last seed": 4}, {}, {"seconds": 3.0})
    first.keep(1, 8, {"faults": 25, "last seed": 8}, {"7": "a row is missing"}, {"seconds": 3.0})
    first.write(["so far"])
    second = Runs(folder, "simulation")
    assert second.next_seed == 9
    second.keep(9, 9, {"faults": 5, "last seed": 9}, {}, {"seconds": 3.0})
    second.write(["all", *second.lines()])
    assert second.totals() == {"faults": 30, "last seed": 9}
    kept = json.loads((tmp_path / "total" / "result.json").read_text())
    assert [(run["first_seed"], run["last_seed"], run["counts"]["faults"]) for run in kept["runs"]] == [
        (1, 8, 25), (9, 9, 5),
    ]  # fmt: skip
    text = (tmp_path / "total" / "result.txt").read_text()
    assert "seeds 1 to 8, 1 failed\n    7: a row is missing\n" in text


def test_seeds_that_are_counted_are_refused(tmp_path):
    runs = Runs(str(tmp_path), "faults")
    runs.keep(5, 8, {}, {}, {})
    for seeds in (range(8, 9), range(1, 6), range(6, 7)):
        with pytest.raises(SystemExit, match="counted there already"):
            runs.check(seeds)
    runs.check(range(9, 20))
    runs.check(range(1, 5))
