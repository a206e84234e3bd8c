"""Micro-batch pipelines on real processes, with a kill -9 of the spout in the middle; then count what landed."""

from __future__ import annotations

import json

import depth
import pytest
from test_runs import landed

pytestmark = pytest.mark.slow
ROWS = 1500


def unit(command, name):
    return next(u for u in command.status()["units"] if u["name"] == name)


@pytest.mark.parametrize(
    "checkpoint", [(), ("--checkpoint", "1")] if depth.PROFILE == "deep" else [("--checkpoint", "1")]
)
def test_a_spout_that_is_killed_between_pipelines_loses_nothing(command, tmp_path, checkpoint):
    policy = ("--policy", "orientstream:pipelines=yes", "--slots", "12")
    command.start("windows", *policy, *checkpoint, "--report", "r.json", out="table", rows=ROWS, go=tmp_path / "go")
    command.running()
    command.until(lambda: unit(command, "load")["tuples_out"] > 500)
    command.until(lambda: command.processes("load"))[0].kill()
    (tmp_path / "go").touch()
    code, _, err = command.wait()
    assert code == 0, err
    rows = landed(tmp_path / "table")
    named = {(row["_id"], row["number"]) for row in rows}
    assert {number for _, number in named} == set(range(ROWS))
    assert len(named) == ROWS  # what came again has the name that it had
    if checkpoint:
        assert len(rows) == ROWS
    changes = json.loads((tmp_path / "r.json").read_text())["changes"]
    assert {c["policy"] for c in changes} == {"orientstream"}
    assert any("pipelines of this window" in c["reason"] for c in changes)
