"""How far time had come when it ended follows from the tuples, wherever batches end and whichever spout ends first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from esault.sinks.collect import read_collected
from esault.spark.engine import reading
from esault.testing import LocalRuntime
from esault.topology.locate import locate

from .chain import Chain

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

PLACE = f"{Path(__file__).with_name('flows.py')}:rounds"


@pytest.mark.parametrize("long_first", [False, True])
@pytest.mark.parametrize("rows", [1, 1000])
@pytest.mark.parametrize(
    "between",
    [lambda it: None, Chain.forget_workers, lambda it: it.rescale(3, rounds=3, behind=2)],
    ids=["one worker", "another worker for each batch", "other tasks for each batch"],
)
def test_timers_at_the_end_go_on_to_the_time_of_the_spout_that_came_furthest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long_first: bool, rows: int, between: Callable[[Chain], None]
) -> None:
    params = {"long_first": long_first}
    local = LocalRuntime(locate(PLACE).build(params))
    local.run_until_drained()
    monkeypatch.setattr(reading, "READ_ROWS", rows)
    it = Chain(PLACE, tmp_path / "run", params, cores=2)
    while not it.epochs.ended.is_set():
        if it.batch(1) and not it.epochs.ended.is_set():
            between(it)
    for sink in ("out", "later"):
        found = read_collected(str(it.folder), sink)
        assert sorted(map(repr, (row[:2] for row in found))) == sorted(
            repr((row.key, row.value)) for row in local.landed(sink)
        ), sink
    assert ("a", {"at": 105}) in [tuple(row[:2]) for row in read_collected(str(it.folder), "out")]
