"""Rows that repeat others are found by the numbers of their ids alone: the same rows stay as by the rule, and as in a plain loop."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from typing import Any

import pytest

from esault.spark import repeats
from esault.spark.repeats import each_once

_COLUMNS = "_run string, _id string, _time timestamp, value long, __part string, __row long"


def _rows(order: random.Random, count: int) -> list[tuple[Any, ...]]:
    made = []
    for row in range(count):
        time = datetime.fromtimestamp(order.randrange(20), timezone.utc)
        name = order.choice([None, *(f"i{n}" for n in range(count // 2))])
        made.append((order.choice(["r1", "r2"]), name, time, row, f"part-{order.randrange(3)}", row))
    return made


def _wanted(rows: list[tuple[Any, ...]], known: set[tuple[str, str]]) -> list[int]:
    first: dict[tuple[str, str], tuple[Any, ...]] = {}
    own = []
    for run, name, time, value, part, row in rows:
        if name is None:
            own.append(value)
        elif (run, name) not in known:
            found = (time, part, row, value)
            first[run, name] = min(first.get((run, name), found), found)
    return sorted([*own, *(found[3] for found in first.values())])


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("how", ["by numbers", "numbers collide", "too many", "none twice"])
def test_the_same_rows_stay_whichever_way_they_are_found(
    spark: Any, monkeypatch: pytest.MonkeyPatch, how: str, seed: int
) -> None:
    from pyspark.sql import functions as f

    order = random.Random(seed)
    rows = _rows(order, 60)
    # of the tables that were made before, those of other runs do not count
    known = [("r1", f"i{order.randrange(40)}") for _ in range(8)] + [("r3", "i1"), ("r2", None)]
    if how == "none twice":
        rows, known = [(run, f"only-{row}", t, v, p, row) for run, _, t, v, p, row in rows], known[-2:]
    monkeypatch.setattr(repeats, "FEW", 0)
    if how == "too many":
        monkeypatch.setattr(repeats, "MANY", 3)
    if how == "numbers collide":
        monkeypatch.setattr(repeats, "_number", lambda: f.pmod(f.xxhash64("_run", "_id"), f.lit(5)))
    frame = spark.createDataFrame(rows, _COLUMNS)
    before = spark.createDataFrame([(*one, None) for one in known], "_run string, _id string, value long")
    runs = {"r1", "r2"}
    with each_once(frame, [before], runs, len(rows), len(known)) as once:
        found = sorted(row.value for row in once.select("value").collect())
        assert once.columns == frame.columns or set(once.columns) == set(frame.columns)
    assert found == _wanted(rows, {one for one in known if one[0] in runs and one[1] is not None})
    assert not spark.sparkContext._jsc.getPersistentRDDs()
