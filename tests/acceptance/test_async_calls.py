"""Calls that wait, on real processes: a change in the middle, and each key's count comes 1, 2, 3 ..."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

pytestmark = pytest.mark.slow


def test_keys_move_in_the_middle_of_their_calls(command, tmp_path):
    command.start("waiting", "--policy", "none", "--report", "r.json", out="out.jsonl", rows=100_000, rate=1000.0)
    command.running()
    command.scale("count", 3)
    code, _, err = command.stop()
    assert code == 0, err
    counts = defaultdict(list)
    for path in tmp_path.glob("out*.jsonl"):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            counts[row["key"]].append(row["value"])
    assert len(counts) == 50
    assert all(sorted(values) == list(range(1, len(values) + 1)) for values in counts.values())
    report = json.loads((tmp_path / "r.json").read_text())
    assert [change["to"] for change in report["changes"]] == [3]
    assert report["roots"]["replayed"] == 0
