"""Every operator that a stream has by name lands the same in one process, on actors and through Spark's stages."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from commands_asked import some_change
from every_operator import NAMES, every_operator, rows

from esault.messages.settings import Settings
from esault.testing import LocalRuntime

N = 300
UNITS = ("reduce", "aggregate", "running", "batch", "pairwise", "changes", "distinct", "throttle", "debounce")
PLACE = f"{Path(__file__).with_name('every_operator.py')}:every_operator"


def bag(found):
    """Of "union" it counts how many: in which order two streams meet is not promised."""
    return Counter(json.dumps(row, sort_keys=True) for row in found)


def landed(local):
    return {name: [(row.key, row.value) for row in local.landed(f"{name}-rows")] for name in NAMES}


@pytest.fixture(scope="module")
def expected():
    local = LocalRuntime(every_operator(N))
    local.run_until_drained()
    return landed(local)


def check(found, expected):
    for name in NAMES:
        if name == "union":
            assert len(found[name]) == len(expected[name]) == N - 3
        else:
            assert bag(found[name]) == bag(expected[name]), name


def test_each_of_them_does_something(expected):
    values = dict(rows(N))
    assert len(values) == 3 and all(expected.values())
    assert len(expected["filter"]) == N // 2
    assert len(expected["large"]) + len(expected["rest"]) == len(expected["throttle"]) + len(expected["throttled"]) == N
    assert len(expected["map"]) == len(expected["sample"]) == len(expected["enrich"]) == N
    assert {value[1] for _, value in expected["lookup"]} == {"none", "one", "two", None}
    assert len(expected["distinct"]) < N
    assert [value["n"] for _, value in expected["aggregate"]].count(7) > 10


@pytest.mark.parametrize("seed", range(3))
def test_also_where_units_split_merge_and_move(done_in_all, expected, seed):
    options = Settings(root_rows=16, frame_rows=8, max_pending=2, reload_state=True)
    local, order = LocalRuntime(every_operator(N), seed=seed, settings=options), random.Random(seed)
    while local.driver.phase != "ended":
        if local.driver.phase == "running" and order.random() < 0.3:
            some_change(local, order, UNITS, ("split", "merge", "move"))
        if not local.step():
            local.wait()
    done_in_all.of(local, "change")
    check(landed(local), expected)


@pytest.mark.slow
def test_on_real_processes(command, tmp_path, expected):
    code, out, err = command.run(PLACE, "--policy", "none", "--slots", "60", n=N, out=tmp_path / "out")
    assert code == 0, err + out
    found = {}
    for name in NAMES:
        lines = (tmp_path / "out" / f"{name}.jsonl").read_text().splitlines()
        found[name] = [(row["key"], row["value"]) for row in map(json.loads, lines)]
    check(found, expected)
