"""Arrays on real processes: keyed sums of NumPy columns, with a split in between, with and without checkpoints."""

from __future__ import annotations

import json
import math

import depth
import pytest
from test_live_changes import scaling, unit

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("checkpoint", depth.chosen([(), ("--checkpoint", "0.2")], [("--checkpoint", "0.2")]), ids=str)
def test_sums_of_arrays_are_right_although_their_unit_is_split_meanwhile(command, tmp_path, checkpoint):
    command.start("sums", "--policy", "none", *checkpoint, end="end", out="out.jsonl", rate=100_000.0)
    command.running()
    command.until(lambda: unit(command, "numbers")["tuples_out"] > 10_000)
    for n in (3, 2):
        with scaling(command, n, "sum"):
            pass
        command.until(lambda n=n: unit(command, "sum")["sub_units"] == n)
    after = unit(command, "numbers")["tuples_out"] + 20_000
    command.until(lambda: unit(command, "numbers")["tuples_out"] >= after)
    (tmp_path / "end").touch()
    code, _, err = command.wait()
    assert code == 0, err
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    found = {row["key"]: row["value"][1] for row in rows}
    assert len(found) == len(rows) == 1000
    assert {row["value"][0] for row in rows} == {"int"}
    # All numbers below some n: their sum says which.
    n = (1 + math.isqrt(1 + int(16 * sum(found.values())))) // 2
    assert n >= after
    assert found == {key: sum(i * 0.5 for i in range(key, n, 1000)) for key in range(1000)}
    kinds = {json.loads(line)["key"] for line in (tmp_path / "out.jsonl.kinds").read_text().splitlines()}
    assert kinds == {"ndarray ndarray"}  # also in the middle of a change
