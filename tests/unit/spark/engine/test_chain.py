"""Whole topologies through the stages of the Spark engine, without Spark: what comes out is what LocalRuntime gives."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from esault.sinks.collect import read_collected
from esault.spark.engine.worker_error import WorkerError
from esault.testing import LocalRuntime
from esault.topology.locate import locate

from .chain import Chain

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

FLOWS = str(Path(__file__).with_name("flows.py"))


def expected(name: str, out: str) -> LocalRuntime:
    local = LocalRuntime(locate(f"{FLOWS}:{name}").build({"out": out}))
    local.run_until_drained()
    return local


def bag(rows: Any) -> Counter[Any]:
    return Counter((row[0], row[1]) for row in rows)


@pytest.mark.parametrize("new_workers", [False, True])
def test_all_groupings_give_what_the_actor_engine_gives(tmp_path: Path, new_workers: bool) -> None:
    out = str(tmp_path / "out")
    local = expected("everything", out)
    chain = Chain(f"{FLOWS}:everything", tmp_path / "run", {"out": out})
    while not chain.epochs.ended.is_set():
        chain.batch(1)
        if new_workers:
            chain.forget_workers()
    for name in ("seen_by_one", "lengths", "halves", "seen_by_all", "seen_by_some", "no_dogs", "sums"):
        got = read_collected(str(chain.folder), name)
        if name == "halves":  # which half a tuple goes to is not promised
            got, want = [total(got), total(local.landed(name))]
            assert got == want
        elif name == "lengths":
            assert total(got) == total(local.landed(name))
        else:
            assert bag(got) == bag(local.landed(name)), name
    assert len(read_collected(str(chain.folder), "both")) == len(local.landed("both"))
    cats = [json.loads(line) for line in (Path(out) / "cats.jsonl").read_text().splitlines()]
    assert len(cats) == len(local.landed("cats"))
    counts = chain.tally.units
    assert counts["split"].rows_in == 100 and counts["picky"].errors == 50
    assert counts["lines"].rows_out == 100


@pytest.mark.parametrize("new_workers", [False, True])
def test_windows_hold_what_they_hold_on_the_actor_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_workers: bool
) -> None:
    monkeypatch.setattr("esault.spark.engine.reading.READ_ROWS", 37)
    local = expected("timed", str(tmp_path))
    chain = Chain(f"{FLOWS}:timed", tmp_path / "run", {"out": str(tmp_path)})
    closed_before_the_end = 0
    while not chain.epochs.ended.is_set():
        chain.batch(2)
        if not chain.epochs.ended.is_set():
            closed_before_the_end = len(read_collected(str(chain.folder), "largest"))
        if new_workers:
            chain.forget_workers()
    chain.forget_workers()
    for name in ("minutes", "slides", "sessions", "joined", "largest"):
        got, want = read_collected(str(chain.folder), name), local.landed(name)
        assert bag_of_text(got) == bag_of_text(want) and len(want) > 3, name
    assert len(read_collected(str(chain.folder), "counts")) == len(local.landed("counts"))
    assert not local.landed("late") and not read_collected(str(chain.folder), "late")
    assert closed_before_the_end > 0  # watermarks closed windows behind windows, not the end alone


@pytest.mark.parametrize("new_workers", [False, True])
def test_calls_that_wait_end_with_their_batch_in_order_for_each_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_workers: bool
) -> None:
    monkeypatch.setattr("esault.spark.engine.reading.READ_ROWS", 70)
    local = expected("waiting", str(tmp_path))
    chain = Chain(f"{FLOWS}:waiting", tmp_path / "run", cores=1)
    assert chain.job.layout.inlined("ask")
    remember = chain.located.load_module().Remember
    remember.most_calls = closed_before_the_end = 0
    while not chain.epochs.ended.is_set():
        closed_before_the_end = len(read_collected(str(chain.folder), "sums"))
        chain.batch(1)
        if new_workers:
            chain.forget_workers()
    chain.forget_workers()
    assert (remember.open_calls, remember.most_calls) == (0, 4)
    assert 0 < closed_before_the_end < len(local.landed("sums"))  # time passes bolts that wait, too
    for name in ("rows", "totals", "sums"):
        assert bag(read_collected(str(chain.folder), name)) == bag(local.landed(name)), name
    counts = chain.tally.units
    assert (counts["ask"].rows_in, counts["ask"].errors, counts["remember"].rows_in) == (300, 30, 270)
    assert counts["remember"].busy > 0 and counts["sums"].late == 0


def test_an_error_of_a_call_ends_the_others_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chain = Chain(f"{FLOWS}:unanswered", tmp_path / "run")
    with pytest.raises(WorkerError, match=r"unit 'ask', process, key \d*7: ValueError: no answer"):
        chain.batch()
    assert not capsys.readouterr().err


def bag_of_text(rows: Any) -> Counter[str]:
    """Values may hold dicts; of a pair's sides it does not matter which of two equal ones came first."""
    return Counter(json.dumps([row[0], row[1]], sort_keys=True) for row in rows)


def total(rows: Any) -> dict[Any, int]:
    sums: Counter[Any] = Counter()
    for row in rows:
        sums[row[0]] += row[1]
    return dict(sums)
