"""Tuples that come too late are the same ones as on the other engines, wherever batches end."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from esault.sinks.collect import read_collected
from esault.spark.engine import reading
from esault.testing import LocalRuntime
from esault.topology.locate import locate

from .chain import Chain

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

FLOWS = str(Path(__file__).with_name("flows.py"))


def bag(rows: Any) -> Counter[str]:
    return Counter(json.dumps(row[:2], sort_keys=True) for row in rows)


@pytest.mark.parametrize("reads", [200, 7])
def test_the_late_stream_is_that_of_the_other_engines_wherever_batches_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: int
) -> None:
    local = LocalRuntime(locate(f"{FLOWS}:tardy").build({}))
    local.run_until_drained()
    monkeypatch.setattr(reading, "READ_ROWS", 1)  # as they come: one at a time
    it = Chain(f"{FLOWS}:tardy", tmp_path / "run", {}, cores=2)
    for part in it.reading.parts:
        part.spout = part.spout.without_pace()
        part.spout.open(it.reading._contexts[0])
    while not it.epochs.ended.is_set():
        it.batch(reads)
    late = 0
    for sink in it.plan.sinks:
        rows = read_collected(str(it.folder), sink.name)
        assert bag(rows) == bag(local.landed(sink.name)), sink.name
        late += len(rows) if sink.name.endswith("-late") else 0
    assert late == sum(it.tally.units[unit].late for unit in ("tens", "slides", "gaps")) > 20
    assert late == sum(local.report().units[unit].late for unit in ("tens", "slides", "gaps"))


@pytest.mark.parametrize("where", ["source", "bolt"])
def test_rows_of_a_batch_that_took_longer_than_idle_are_not_late_for_those_of_another_sender(
    tmp_path: Path, where: str
) -> None:
    """Rows come sender by sender: before those of the second have come, its last word is as old as the batch before."""
    it = Chain(f"{FLOWS}:abreast", tmp_path / "run", {"where": where, "out": str(tmp_path)}, cores=2)
    now = 1000.0
    while not it.epochs.ended.is_set():
        now += 60.0
        it.batch(1, now)
    assert it.epoch > 3
    assert it.tally.units["counted"].late == 0
