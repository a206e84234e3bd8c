"""Whole topologies through the stages of the Spark engine, without Spark: what comes out is what LocalRuntime gives."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from esault import TopologyFailed
from esault.messages.settings import Settings
from esault.sinks.collect import read_collected
from esault.spark.engine import reading
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
def test_each_task_has_the_same_broadcast_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_workers: bool
) -> None:
    monkeypatch.setattr(reading, "READ_ROWS", 10)
    chain = Chain(f"{FLOWS}:ruled", tmp_path / "run", {"out": str(tmp_path / "out")}, cores=3)
    while not chain.epochs.ended.is_set():
        chain.batch(1)
        if new_workers:
            chain.forget_workers()
    ends = [(row[0], row[1]) for row in read_collected(str(chain.folder), "ends")]
    rules = tuple((f"rule-{i}", tuple(range(i, 60, 3))) for i in range(3))
    assert sorted(ends) == [(key, (len(range(key, 100, 7)), rules)) for key in range(7)]


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
    for name in ("minutes", "slides", "sessions", "joined", "largest", "plain", "odd"):
        got, want = read_collected(str(chain.folder), name), local.landed(name)
        assert bag_of_text(got) == bag_of_text(want) and len(want) > 3, name
    assert len(read_collected(str(chain.folder), "counts")) == len(local.landed("counts"))
    assert not local.landed("late") and not read_collected(str(chain.folder), "late")
    assert closed_before_the_end > 0  # watermarks closed windows behind windows, not the end alone


@pytest.mark.parametrize("stops_at", [None, 2, 9])
def test_a_spout_is_read_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stops_at: int | None) -> None:
    monkeypatch.setattr("esault.spark.engine.reading.READ_ROWS", 40)
    chain = Chain(f"{FLOWS}:ordered", tmp_path / "run")
    names, changes, seen = chain.reading.parts
    while not chain.epochs.ended.is_set():
        assert not changes.rows or (names.ended and names.done == names.rows == 400)
        assert not seen.rows or (changes.ended and changes.done == changes.rows == 20)
        if chain.epoch == stops_at:
            chain.rescale(cores=3)
        chain.batch(1)
    got = read_collected(str(chain.folder), "joined")
    assert sorted((key, *value) for key, value in got) == sorted(
        (f"c{i % 40}", i, f"changed {i % 40}" if i % 40 < 20 else f"name {360 + i % 40}") for i in range(80)
    )


def test_a_spout_is_read_when_one_without_an_end_has_caught_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("esault.spark.engine.reading.READ_ROWS", 40)
    chain = Chain(f"{FLOWS}:caught_up", tmp_path / "run")
    names, seen = chain.reading.parts
    for _ in range(100):
        assert not seen.rows or names.done == 400
        chain.batch(1)
        if seen.ended and seen.done == seen.rows:
            break
    got = read_collected(str(chain.folder), "joined")
    assert sorted(got) == sorted((f"c{i % 40}", (i, f"name {360 + i % 40}")) for i in range(80))
    chain.reading.drain(False)
    chain.drain()


@pytest.mark.parametrize("new_workers", [False, True])
def test_state_that_was_cleared_is_gone_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_workers: bool
) -> None:
    monkeypatch.setattr("esault.spark.engine.reading.READ_ROWS", 37)
    local = expected("trips", str(tmp_path))
    chain = Chain(f"{FLOWS}:trips", tmp_path / "run", {"out": str(tmp_path)})
    while not chain.epochs.ended.is_set():
        chain.batch(1)
        if new_workers:
            chain.forget_workers()
    got, want = read_collected(str(chain.folder), "trips"), local.landed("trips")
    assert bag(got) == bag(want) and len(want) > 100


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


@pytest.mark.parametrize("what", ["none", "float", "list", "inside"])
def test_a_key_that_cannot_be_one_is_refused_in_one_set_of_words_however_many_tasks(tmp_path: Path, what: str) -> None:
    place = f"{Path(__file__).parents[3] / 'runtime' / 'scenarios.py'}:bad_key"
    with pytest.raises(TopologyFailed) as caught:
        # A LocalRuntime looks at each emit by itself, and names the tuple that was processed.
        LocalRuntime(locate(place).build({"what": what}), settings=Settings(watch_values=False)).run_until_drained()
    for tasks in (1, 3):
        chain = Chain(place, tmp_path / str(tasks), {"what": what, "p": tasks}, cores=tasks)
        assert chain.job.layout.tasks == {"worker": tasks}
        with pytest.raises(WorkerError) as refused:
            while not chain.epochs.ended.is_set():
                chain.batch()
        assert str(caught.value) in str(refused.value)
        chain.forget_workers()


@pytest.mark.parametrize("new_workers", [False, True])
def test_keys_that_python_takes_for_equal_are_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_workers: bool
) -> None:
    monkeypatch.setattr("esault.spark.engine.reading.READ_ROWS", 40)
    chain = Chain(f"{FLOWS}:alike", tmp_path)
    while not chain.epochs.ended.is_set():
        chain.batch(1)
        if new_workers:
            chain.forget_workers()
    assert chain.epoch > 4
    rows = {repr(key): 20 for key in chain.located.load_module().ALIKE}
    arrays = {"True": 24, "False": 12, "1": 12, "0": 12, "5": 12}
    for name, want in (("rows", rows), ("arrays", arrays)):
        for sink, found in (("counts", want), ("kept", dict.fromkeys(want, 1)), ("expired", want)):
            assert dict(read_collected(str(chain.folder), f"{name}_{sink}")) == found, (name, sink)
    chain.forget_workers()


@pytest.mark.parametrize("new_workers", [False, True])
@pytest.mark.parametrize("spout", ["numbers", "stream", "paced"])
def test_hooks_of_spouts_and_sinks_are_called_in_the_order_that_they_may_rely_on(
    tmp_path: Path, spout: str, new_workers: bool
) -> None:
    place = Path(__file__).parents[3] / "contract" / "recorded.py"
    said = tmp_path / "said.jsonl"
    chain = Chain(f"{place}:topology", tmp_path / "run", {"said": str(said), "spout": spout, "n": 200})
    recorded = chain.located.load_module()
    while not chain.epochs.ended.is_set():
        chain.batch(1)
        if new_workers:
            chain.forget_workers()
    chain.reading.stop()
    chain.forget_workers()
    assert recorded.illegal(said, spark=True) == []
    kinds = {kind for kind, _ in recorded.of_each(said)}
    assert kinds == {"Stream" if spout == "stream" else "Numbers", "Rows"}


def test_more_kinds_of_windows_hold_what_they_hold_on_the_actor_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("esault.spark.engine.reading.READ_ROWS", 37)
    local = expected("more_windows", str(tmp_path))
    chain = Chain(f"{FLOWS}:more_windows", tmp_path / "run", {"out": str(tmp_path)})
    while not chain.epochs.ended.is_set():
        chain.batch(2)
        chain.forget_workers()
    for name in ("days", "shifts", "slides", "sessions", "last"):
        got, want = read_collected(str(chain.folder), name), local.landed(name)
        assert bag_of_text(got) == bag_of_text(want) and len(want) > 3, name


@pytest.mark.parametrize("new_workers", [False, True])
def test_panes_come_to_what_they_come_to_on_the_actor_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_workers: bool
) -> None:
    monkeypatch.setattr("esault.spark.engine.reading.READ_ROWS", 37)
    monkeypatch.setattr("esault.spark.engine.reading._TIMERS_EVERY", 0.005)
    local = expected("paned", str(tmp_path))
    chain = Chain(f"{FLOWS}:paned", tmp_path / "run", {"out": str(tmp_path)})
    while not chain.epochs.ended.is_set():
        chain.batch(2)
        if new_workers:
            chain.forget_workers()
        time.sleep(0.01)
    chain.forget_workers()

    def landed(name: str) -> Any:
        return read_collected(str(chain.folder), name), [(row.key, row.value) for row in local.landed(name)]

    got, want = landed("ordered")
    assert bag_of_text(got) == bag_of_text(want) and len(want) > 3
    got, want = [numbers_by_window(_kept(rows)) for rows in landed("late")]
    assert got == want and len(want) > 3
    got, want = [numbers_of_all_panes(rows) for rows in landed("early")]
    assert got == want
    clock = landed("clock")[0]
    assert any(pane[0] == "early" for _, (_, pane, _) in clock)
    newest = {(key, start): numbers for key, (start, _, numbers) in sorted(clock, key=lambda row: row[1][1][1])}
    assert sorted(n for numbers in newest.values() for n in numbers) == list(range(600))
    assert len({start for _, start in newest}) > 1


def _kept(rows: Any) -> Any:
    """What was not taken back."""
    count: Counter[Any] = Counter()
    for key, (value, diff) in rows:
        count[key, value] += diff
    assert set(count.values()) <= {0, 1}
    return [each for each, n in count.items() if n]


def numbers_by_window(rows: Any) -> Any:
    """Of the only row of each key and window, which is its last."""
    assert all(pane[2] for _, (_, pane, _) in rows)
    found = {(key, start): sorted(numbers) for key, (start, _, numbers) in rows}
    assert len(found) == len(rows)
    return found


def numbers_of_all_panes(rows: Any) -> Any:
    """Of all rows of each key and window."""
    found: dict[Any, list[int]] = {}
    for key, (start, _, numbers) in rows:
        found.setdefault((key, start), []).extend(numbers)
    return {place: sorted(numbers) for place, numbers in found.items()}
