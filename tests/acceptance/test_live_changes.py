"""Changes of a running topology on real processes, with a kill -9 in the middle; then count what landed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from test_door import ROOT, esault, running, status
from test_runs import landed, write_lines

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("victim", ["count", "split", "newest"])
def test_who_is_killed_in_mid_change_loses_nothing(command, tmp_path, victim):
    write_lines(tmp_path, 60_000)
    command.start("words", "--policy", "none", path="in.txt", out="table", p=2, rate=2000.0)
    running(command)
    scaling = subprocess.Popen(
        [sys.executable, "-m", "esault", "scale", "count", "4", "--run", command.name],
        env={**os.environ, "PYTHONPATH": ROOT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert "to 4 sub-units" in scaling.stdout.readline()
        unit = "count" if victim == "newest" else victim
        processes = command.processes(unit)
        chosen = max(processes, key=lambda p: p.pid) if victim == "newest" else min(processes, key=lambda p: p.pid)
        chosen.kill()
        scaling.communicate(timeout=30)
    finally:
        scaling.kill()
        scaling.communicate()
    # dropped if it died before anybody knew of the new table, done otherwise; never something between
    command.until(lambda: next(u for u in status(command)["units"] if u["name"] == "count")["sub_units"] in (2, 4))
    assert esault("stop", "--run", command.name)[0] == 0
    code, _, err = command.wait()
    assert code == 0, err
    found = {row["_id"].split(":")[1] for row in landed(tmp_path / "table")}
    last = max(int(each.split(".")[0]) for each in found)
    missing = [f"{i}.{j}.0" for i in range(last + 1) for j in range(8) if f"{i}.{j}.0" not in found]
    assert missing == []
    assert last > 500
