"""Runs that go on with other tasks: every state is where its tuples come, and what comes out is as if nothing had happened."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import depth
import pytest

from esault.spark.engine import reading
from esault.spark.engine.event_time import Way, Words
from esault.testing import LocalRuntime
from esault.topology.locate import locate

from .chain import Chain

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

FLOWS = str(Path(__file__).with_name("flows.py"))


def bag(rows: Any) -> Counter[str]:
    return Counter(json.dumps(row[:2], sort_keys=True, default=repr) for row in rows)


def total(rows: Any) -> dict[Any, int]:
    sums: Counter[Any] = Counter()
    for row in rows:
        sums[row[0]] += row[1]
    return dict(sums)


@pytest.mark.parametrize(
    ("name", "cores"),
    depth.chosen(
        [("timed", (2, 3)), ("timed", (3, 1)), ("everything", (2, 3)), ("waiting", (3, 1))],
        [("timed", (3, 1)), ("everything", (2, 3)), ("waiting", (3, 1))],
    ),
)
def test_tables_are_those_of_a_run_that_kept_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, cores: tuple[int, int]
) -> None:
    monkeypatch.setattr(reading, "READ_ROWS", 16)
    place, params = f"{FLOWS}:{name}", {"out": str(tmp_path / "out")}
    local = LocalRuntime(locate(place).build(params))
    local.run_until_drained()
    it = Chain(place, tmp_path / "run", params, cores=cores[0])
    for _ in range(2):
        assert it.batch(1)
    it.rescale(cores[1])
    it.batch(1)
    it.rescale(cores[0] + 1)  # also one that began with seeds
    it.drain()
    found = {
        sink.name: sink.sink.collected_rows(str(it.folder), sink.name) for sink in it.plan.sinks if sink.sink.collects
    }
    for sink, rows in found.items():
        want = local.landed(sink)
        if sink == "lengths":  # what it keeps by other keys than those of its tuples cannot follow them
            continue
        if sink == "halves":  # a row for each part of a key
            assert total(rows) == total(want), sink
        elif sink == "both":  # which of the rows meet first is open
            assert len(rows) == len(want)
        else:
            assert bag(rows) == bag(want), sink


def test_a_state_of_no_keys_goes_as_a_whole_and_what_is_left_over_finishes(tmp_path: Path) -> None:
    it = Chain(f"{FLOWS}:endless", tmp_path / "run", {"out": str(tmp_path / "out")}, cores=2)
    it.batch()
    it.rescale(5, count=5)
    it.batch()
    it.rescale(1, count=1)
    it.reading.drain(pause=False)
    it.drain()
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    totals: dict[int, list[int]] = {}
    for row in rows:
        totals.setdefault(row["key"], []).append(row["value"])
    assert len(totals) == 7
    for values in totals.values():
        assert sorted(values) == list(range(1, len(values) + 1))


def test_watermarks_begin_with_the_slowest_and_ways_from_other_tasks_with_theirs() -> None:
    words = Words([Way("lines/0>lines.0", None), Way("a/0>a.1", None), Way("a/1>a.1", None), Way("b/0>b.0", None)])
    words.merge(
        [
            (5.0, {"lines/0>lines.0": (9.0, 1.0), "a/0>a.1": (7.0, 1.0)}, ()),
            (6.0, {"lines/0>lines.0": (9.0, 2.0), "a/1>a.1": (None, 1.0), "a/2>a.1": (8.0, 3.0)}, ()),
        ]
    )
    assert words.current == 5.0
    _, said, _, furthest = words.state()
    assert furthest == 9.0
    assert said == {"lines/0>lines.0": (9.0, 2.0), "a/0>a.1": (7.0, 3.0), "a/1>a.1": (7.0, 3.0)}
    assert not words.settle(10.0)  # b has said nothing yet: all wait for it
