"""Every operator that a stream has by name, through the stages of the Spark engine: what lands is what LocalRuntime gives."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from esault.sinks.collect import read_collected
from esault.testing import LocalRuntime

from .chain import Chain

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

PLACE = f"{Path(__file__).parents[3] / 'acceptance' / 'every_operator.py'}:every_operator"


def bag(rows: Any) -> Counter[str]:
    return Counter(json.dumps([row[0], row[1]], sort_keys=True) for row in rows)


@pytest.mark.parametrize("new_workers", [False, True])
def test_they_land_what_they_land_on_the_actor_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_workers: bool
) -> None:
    monkeypatch.setattr("esault.spark.engine.reading.READ_ROWS", 60)
    chain = Chain(PLACE, tmp_path / "run")
    local = LocalRuntime(chain.located.build({}))
    local.run_until_drained()
    batches = 0
    while not chain.epochs.ended.is_set():
        chain.batch(1)
        batches += 1
        if new_workers:
            chain.forget_workers()
    chain.forget_workers()
    assert batches > 3
    names = chain.located.load_module().NAMES
    assert len(names) == 20
    for name in names:
        got, want = read_collected(str(chain.folder), f"{name}-rows"), local.landed(f"{name}-rows")
        if name == "union":  # in which order two streams meet is not promised
            assert len(got) == len(want)
        else:
            assert bag(got) == bag(want), name
