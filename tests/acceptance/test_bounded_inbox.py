"""A bounded inbox on real processes, with live changes and a kill -9: what arrived was processed, or dropped, or died."""

from __future__ import annotations

import json

import pytest
from test_door import esault
from test_runs import landed

pytestmark = pytest.mark.slow


def unit(command, name="slow"):
    return next(u for u in command.status()["units"] if u["name"] == name)


def grown(command, more):
    """Until so many more were dropped, and some were processed."""
    before = unit(command)
    command.until(
        lambda: (
            unit(command)["dropped"] >= before["dropped"] + more and unit(command)["tuples_in"] > before["tuples_in"]
        )
    )


@pytest.mark.parametrize("kill", [False, True])
def test_what_arrives_is_processed_or_dropped(command, tmp_path, kill):
    command.start("overflowing", "--policy", "none", "--report", "report.json", out="table", rate=5000.0)
    command.running()
    grown(command, 1000)
    command.scale("slow", 3)
    grown(command, 1000)
    if kill:
        max(command.processes("slow"), key=lambda p: p.pid).kill()
        command.until(lambda: command.status()["deaths"] == 1)
        grown(command, 1000)
    command.scale("slow", 2)
    grown(command, 1000)
    assert "dropped" in esault("status", "--run", command.name)[1]
    code, _, err = command.stop()
    assert code == 0, err
    report = json.loads((tmp_path / "report.json").read_text())
    slow, numbers, roots = report["units"]["slow"], report["units"]["numbers"], report["roots"]
    died = slow["arrivals"] - slow["tuples_in"] - slow["dropped"]
    rows = landed(tmp_path / "table")
    assert slow["dropped"] > 0
    assert slow["backlog"] == 0
    assert roots["open"] == 0
    if not kill:
        assert died == 0
        assert roots["replayed"] == 0
        assert slow["arrivals"] == numbers["tuples_out"]
        assert len(rows) == len({row["n"] for row in rows}) == slow["tuples_in"]
        totals = {}
        for row in rows:
            totals.setdefault(row["key"], []).append(row["total"])
        assert all(sorted(found) == list(range(1, len(found) + 1)) for found in totals.values())
    else:
        assert 0 <= died <= 2 * 200  # what it had said last to wait and to be at; its roots were replayed
        found = {row["n"] for row in rows}
        # What the dead one dropped since its last word is in no count of arrivals.
        uncounted = numbers["tuples_out"] - slow["arrivals"]
        assert max(found) + 1 - len(found) <= slow["dropped"] + died + uncounted
