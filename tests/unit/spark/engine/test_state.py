"""State of tasks from batch to batch: what is written, what a batch that comes again finds, ticks and expiry."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from esault.payload.codec import Codec
from esault.routing.many_keys import names_of
from esault.sinks.collect import read_collected
from esault.sources import Items
from esault.spark.engine import batch_size, frames, garbage, pieces, processor, reader, reading, stages, task
from esault.spark.engine.offsets import publish, resumed
from esault.spark.engine.query import what_spark_said
from esault.spark.engine.source import controls, divided, handed, ranges
from esault.spark.engine.worker_error import WorkerError

from .chain import Chain, _Rows

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

FLOWS = str(Path(__file__).with_name("flows.py"))


def chain(name: str, tmp_path: Path, **options: object) -> Chain:
    return Chain(f"{FLOWS}:{name}", tmp_path / "run", {"out": str(tmp_path / "out")}, **options)  # type: ignore[arg-type]


def rows_of(tmp_path: Path) -> list[tuple[int, int]]:
    text = (tmp_path / "out" / "rows.jsonl").read_text()
    return [(row["key"], row["value"]) for row in map(json.loads, text.splitlines())]


def exact(rows: list[tuple[int, int]]) -> bool:
    """Each total of each key once."""
    totals: dict[int, list[int]] = {}
    for key, value in rows:
        totals.setdefault(key, []).append(value)
    return all(sorted(values) == list(range(1, len(values) + 1)) for values in totals.values())


def end(it: Chain) -> None:
    it.reading.drain(pause=False)
    it.drain()


def test_a_batch_that_is_computed_again_counts_once(tmp_path: Path) -> None:
    it = chain("endless", tmp_path)
    it.batch()
    for _ in range(3):
        it.reading.step(time.time())
    offset = json.loads(json.dumps(it.reading._offset))
    before = {seat: store.copy() for seat, store in it.stores.items()}
    it.compute(it.offset, offset)  # and its worker dies before anybody hears of it
    it.stores.update({seat: store.copy() for seat, store in before.items()})
    it.epochs.batch(_Rows(it.compute(it.offset, offset)), it.epoch)  # in the same workers, whose objects are ahead
    it.epoch, it.offset = it.epoch + 1, offset
    end(it)
    rows = rows_of(tmp_path)
    assert exact(rows) and len(rows) == it.tally.units["count"].rows_in > 200


def test_a_slow_bolt_is_given_few_tuples_at_first_and_no_more_than_it_can_take_in_some_seconds(tmp_path: Path) -> None:
    it = chain("sleepy", tmp_path)
    it.batch()
    assert it.tally.units["count"].rows_in == batch_size.FIRST
    # Two tasks, who sleep at least: a quick one may have 64 times as many now.
    assert batch_size.FIRST < it.reading.size.rows <= 3 * batch_size.LONG_ENOUGH / 0.002
    it.drain()
    assert exact(rows_of(tmp_path)) and len(rows_of(tmp_path)) == 700


def test_a_batch_that_has_a_record_is_not_computed_again(tmp_path: Path) -> None:
    it = chain("endless", tmp_path)
    it.batch()
    counted = it.tally.units["count"].rows_in

    class Never:
        def collect(self) -> None:
            raise AssertionError("computed again")

    it.epochs.batch(Never(), 0)
    assert it.tally.units["count"].rows_in == counted
    end(it)
    assert exact(rows_of(tmp_path))


def test_a_batch_writes_the_keys_it_touched_and_now_and_then_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "FEW", 200)
    monkeypatch.setattr(task, "PIECE", 100)
    it = chain("endless", tmp_path, cores=1)
    store = it.stores["count", 0]
    for _ in range(12):
        it.batch(1)
        it.forget_workers()
    assert 1 <= store.puts <= 6
    assert sum(map(len, store.list)) < 2000
    end(it)
    assert exact(rows_of(tmp_path))


def test_states_of_keys_that_come_once_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "FEW", 0)
    it = chain("once", tmp_path)
    for _ in range(4):
        it.reading.size.rows = it.reading.size.next_rows = 1000
        assert it.batch(8)
        it.forget_workers()
    stores = it.stores.values()
    kept = [key for store in stores for piece in store.list for key, _, _ in pieces.rows_of(Codec(), piece)]
    assert len(kept) == len(set(kept)) == it.tally.units["count"].rows_in > 2000
    assert not any(store.puts for store in stores)
    end(it)
    assert exact(rows_of(tmp_path))


def test_what_is_written_has_keys_that_come_when_all_others_were_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "FIRST_ROWS", 8)
    monkeypatch.setattr(frames, "FRAME_ROWS", 8)
    named, processed, process = [], [], task.Task.process
    monkeypatch.setattr("esault.spark.engine.task.names_of", lambda keys: named.append(1) or names_of(keys))
    monkeypatch.setattr(task.Task, "process", lambda self, frame: processed.append(frame[0]) or process(self, frame))
    it = chain("newcomers", tmp_path)
    while not it.epochs.ended.is_set():
        it.batch()
        it.forget_workers()
    it.drain()
    rows = rows_of(tmp_path)
    assert exact(rows) and len(rows) == 1500
    assert len({key for key, _ in rows}) == 16
    assert len(named) < processed.count(frames.DATA) / 2  # most frames have keys alone that are noted


def test_ticks_reach_all_objects_also_those_of_another_worker(tmp_path: Path) -> None:
    it = chain("ticking", tmp_path)
    for _ in range(6):
        it.batch(1)
        it.forget_workers()
        time.sleep(0.012)
    it.reading.drain(pause=False)
    while not it.epochs.ended.is_set():
        it.batch(1)
    it.forget_workers()
    said = read_collected(str(it.folder), "ticks")
    assert {key for key, _ in said} == set(range(7))
    assert sum(value[1] for _, value in said) == it.tally.units["ticks"].rows_in
    assert sum(1 for _, value in said if value[0] == "tick") >= 14
    assert sum(1 for _, value in said if value[0] == "finish") == 7


@pytest.mark.parametrize("new_workers", [False, True])
def test_keys_without_tuples_expire_once_wherever_their_task_runs(tmp_path: Path, new_workers: bool) -> None:
    it = chain("expiring", tmp_path)
    until = time.time() + 5
    while len(read_collected(str(it.folder), "gone")) < 7 and time.time() < until:
        it.batch(1)
        if new_workers:
            it.forget_workers()
        time.sleep(0.01)
    end(it)
    assert sorted(read_collected(str(it.folder), "gone")) == [(key, ("finish", 1)) for key in range(7)]


@pytest.mark.parametrize("new_workers", [False, True])
def test_hooks_that_wait_have_their_turn_among_the_tuples_of_a_key(tmp_path: Path, new_workers: bool) -> None:
    it = chain("waiting_hooks", tmp_path)
    until = time.time() + 30
    while time.time() < until and (it.epoch < 6 or len(read_collected(str(it.folder), "gone")) < 7):
        it.batch(1)
        if new_workers:
            it.forget_workers()
        time.sleep(0.012)
    gone = read_collected(str(it.folder), "gone")
    end(it)
    assert sorted(gone) == sorted(read_collected(str(it.folder), "gone")) == [(key, 1) for key in range(7)]
    seen, ticks = dict.fromkeys(range(7), 0), 0
    for key, (what, value) in read_collected(str(it.folder), "rows"):
        if what == "tick":
            assert value == seen[key]
            ticks += 1
        else:
            seen[key] += 1
            assert what == seen[key]
    assert ticks >= 14 and sum(seen.values()) == it.tally.units["remember"].rows_in > 100


def test_what_is_spooled_is_read_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_size, "PIECE_ROWS", 20)
    it = chain("poured", tmp_path, cores=3)
    while not it.epochs.ended.is_set():
        it.batch(6)
        it.forget_workers()
    it.reading._close()
    assert sorted(read_collected(str(it.folder), "totals")) == [(key, 20) for key in range(5)]


def test_a_spout_of_an_earlier_run_that_cannot_be_closed_ends_no_other_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Gone(Items):
        def close(self) -> None:
            raise OSError("its folder is not there")

    reader._HERE["run-before", "numbers", 0] = (7, Gone([]), ())
    it = chain("endless", tmp_path)
    it.batch()
    end(it)
    assert exact(rows_of(tmp_path))
    assert "unit 'numbers', close: OSError: its folder is not there" in capsys.readouterr().err


def test_garbage_is_looked_for_as_in_processes_of_actors_once_a_worker_has_its_plan() -> None:
    program = (
        "import gc; from esault.spark.engine.garbage import settle_garbage as settle; settle(); "
        "gc.set_threshold(7) if gc.get_freeze_count() and gc.get_threshold() == (50_000, 20, 50) else None; settle(); "
        "print(gc.get_threshold()[0])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "7\n"


def test_what_a_task_leaves_is_not_looked_at_behind_it_until_there_is_twice_as_much() -> None:
    program = """
import gc, weakref
from esault.spark.engine import garbage
class Object: pass
def kept(): return any(type(each) is Object for each in gc.get_objects())
def circle():
    made = Object()
    made.itself = made
    return weakref.ref(made)
def behind():
    garbage.spare_garbage()
    looked = kept()
    gc.collect()
    return looked
garbage.settle_garbage()
objects, gone = [Object()], circle()
print(behind(), gone() is None)
garbage.MORE = 0
objects += [Object() for _ in range(garbage._left)]
print(behind(), gone() is None)
garbage.settle_garbage()
print(kept(), behind())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False False\nTrue True\nFalse False\n"


@pytest.mark.parametrize("stage", ["spouts", "level", "sinks"])
def test_each_worker_settles_its_garbage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    it, settled, spared = chain("endless", tmp_path), [], []
    monkeypatch.setattr(stages, "_partition", lambda: 0)
    for module in (stages, garbage):
        monkeypatch.setattr(module, "settle_garbage", lambda: settled.append(stage))
        monkeypatch.setattr(module, "spare_garbage", lambda: spared.append(stage))
    if stage == "sinks":
        monkeypatch.setattr(stages, "_epoch", lambda: 0)
        settled += list(stages.sink_stage(it.job)(iter([]))) or [stage]
    elif stage == "spouts":
        assert list(stages.read_stage(it.job, [])) == [] and settled
    else:
        level = processor.Level(it.job, ("count",))
        level._store = it.stores["count", 0]
        monkeypatch.setattr(
            "pyspark.TaskContext.get", lambda: SimpleNamespace(partitionId=lambda: 0, getLocalProperty=lambda _: "0")
        )
        pulse = Codec().pack((frames.PULSE, 1.0))
        assert list(level.handleInputRows((it.job.layout.groups["count", 0],), iter([(0, pulse)]), None)) and settled
    assert spared == [stage]
    it.reading._close()
    it.forget_workers()


def test_a_part_that_is_far_ahead_is_read_by_several() -> None:
    marks = [[row, float(row), f"{row}".encode().hex() if row % 20 == 0 and row else None] for row in range(0, 100, 10)]
    pieces = divided([0, None, False, []], [100, "ZW5k", False, marks], 3)
    assert [(piece[0], piece[2]) for piece in pieces] == [(0, 40), (40, 20), (60, 40)]
    assert pieces[0][1] is None and all(piece[1] is not None for piece in pieces[1:])
    assert [piece[4] for piece in pieces] == [None, None, b"end"]
    assert pieces[1][3][0] == (40, 40.0) and pieces[1][3][1:] == [(50, 50.0)]
    again = divided([30, "c3RhcnQ=", False, []], [100, "ZW5k", False, marks], 1)
    assert [piece[:3] for piece in again] == [(30, b"start", 70)]


def test_parts_of_different_sizes_are_read_in_pieces_of_about_one_size_the_largest_first() -> None:
    def part(rows: int) -> list[object]:
        return [rows, "ZW5k", False, [[row, 0.0, f"{row:04}" if row else None] for row in range(0, rows, 10)]]

    none = [0, None, False, []]
    before, after = ({"parts": {"few": [few], "many": [many]}} for few, many in ((none, none), (part(30), part(370))))
    found = ranges(before, {**after, "now": 1.0}, 2)
    assert [(frame[1], frame[5]) for frame in found] == [("many", 100), *[("many", 90)] * 3, ("few", 30)]
    assert sorted(frame[3] for frame in found if frame[1] == "many") == [0, 90, 180, 280]
    assert found == ranges(before, {**after, "now": 1.0}, 2)


def test_offsets_tell_pulses_ends_and_what_was_read() -> None:
    before = {
        "parts": {"a": [[0, None, False, []], [5, "eA==", False, []]]},
        "pulses": {"u": [1, 9.0]},
        "end": False,
        "now": 9.1,
    }
    after = {
        "parts": {"a": [[0, None, True, []], [9, "eQ==", False, []]]},
        "pulses": {"u": [2, 9.5]},
        "end": False,
        "now": 9.6,
    }
    assert [frame[1:4] for frame in ranges(before, after, 4)] == [("a", 1, 5)]
    assert controls(before, after) == (1, False, {"u": 9.5}, [("a", 0)], 9.6, False)
    assert [[frame[:2] for frame in hand] for hand in handed(before, after, 4)] == [[(0, "a"), (1, False)]]
    alone = {**after, "end": True}
    assert handed(after, alone, 4) == [[controls(after, alone)]] and handed(after, after, 4) == []
    assert controls(after, after) is None
    assert controls(after, {**after, "end": True}) == (1, True, {}, [], 9.6, False)
    assert controls(after, {**after, "generation": 1}) == (1, False, {}, [], 9.6, True)


def test_a_run_goes_on_behind_what_spark_has_in_its_log(tmp_path: Path) -> None:
    assert resumed(tmp_path) is None
    (tmp_path / "offsets").mkdir()
    for batch in (9, 10):
        offset = {"parts": {}, "pulses": {}, "end": batch == 10}
        (tmp_path / "offsets" / str(batch)).write_text(f'v1\n{{"batch": 1}}\n{json.dumps(offset)}')
    (tmp_path / "offsets" / ".11.tmp").write_text("half")
    assert resumed(tmp_path) == {"parts": {}, "pulses": {}, "end": True}
    publish(tmp_path, {"parts": {}})
    assert json.loads((tmp_path / "latest.json").read_text()) == {"parts": {}}


def test_what_spark_says_of_an_error_is_cut_down_to_the_users() -> None:
    error = WorkerError("unit x: ValueError: no\nTraceback ...")
    text = f"org.apache.spark: at ...\n{error}\n at py4j"
    assert what_spark_said(text) == "unit x: ValueError: no\nTraceback ..."
    assert what_spark_said("java.lang.OutOfMemoryError") is None


def test_an_error_names_unit_key_and_line(tmp_path: Path) -> None:
    it = chain("angry", tmp_path)
    with pytest.raises(
        WorkerError, match=r"(?s)unit 'angry', process, key 'mat': ValueError: not the mat.*raise Value"
    ):
        it.drain()
    it.forget_workers()
    it.reading._close()


@pytest.mark.parametrize(("flow", "rows"), [("spread", 2048), ("everything", 40), ("timed", 60), ("fragile", 60)])
def test_a_batch_that_fresh_workers_compute_again_sends_the_same_rows_to_the_same_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flow: str, rows: int
) -> None:
    """Else tuples would double or vanish where what one worker sent is lost after some of its receivers are done."""
    monkeypatch.setattr(reading, "READ_ROWS", rows)
    it = Chain(f"{FLOWS}:{flow}", tmp_path / "run", {"out": str(tmp_path / "out")}, cores=3)
    clock = time.time
    batches = 0
    while not it.epochs.ended.is_set():
        it.reading.step(time.time())
        offset = json.loads(json.dumps(it.reading._offset))
        if offset == it.offset:
            continue
        batches += 1
        before = {place: store.copy() for place, store in it.stores.items()}
        it.compute(it.offset, offset)  # in workers that computed the batch before, too
        first = it.shuffled
        it.forget_workers()
        it.stores.clear()
        it.stores.update(before)
        monkeypatch.setattr(time, "time", lambda: clock() + 60)  # later, in others
        computed = it.compute(it.offset, offset)
        monkeypatch.setattr(time, "time", clock)
        assert [sum(sent.values()) for sent in first] == [sum(sent.values()) for sent in it.shuffled]
        same = first == it.shuffled
        assert same
        it.epochs.batch(_Rows(computed), it.epoch)
        it.epoch, it.offset = it.epoch + 1, offset
    assert batches > 2


def test_dead_letters_are_written_once_by_the_driver_and_drawn_rows_are_drawn_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "READ_ROWS", 60)
    it = chain("fragile", tmp_path)
    drawn = vars(it.located.load_module())["DRAWN"]
    drawn.clear()
    while not it.epochs.ended.is_set():
        it.reading.step(time.time())
        offset = json.loads(json.dumps(it.reading._offset))
        if offset != it.offset:
            before = {place: store.copy() for place, store in it.stores.items()}
            it.compute(it.offset, offset)  # and its worker dies
            it.forget_workers()
            it.stores.clear()
            it.stores.update(before)
            assert it.batch(0)
    assert drawn == list(range(300))
    letters = [json.loads(line) for line in (tmp_path / "out" / "dead.0.jsonl").read_text().splitlines()]
    steps = [json.loads(line) for line in (tmp_path / "out" / "steps.0.jsonl").read_text().splitlines()]
    assert sorted(letter["value"] for letter in letters) == [i for i in range(300) if i % 10 in (3, 7)]
    assert sorted(letter["value"] for letter in steps) == [i for i in range(300) if i % 10 == 9]
    assert len({letter["id"] for letter in [*letters, *steps]}) == 90
    assert it.tally.units["fragile"].dead_letters == 60  # its step's, too
    totals = dict(read_collected(str(it.folder), "totals"))
    assert sum(totals.values()) == sum(i for i in range(300) if i % 10 not in (3, 7, 9))
    written = (tmp_path / "out" / "dead.0.jsonl").read_bytes()
    kept = {epoch: it.epochs._journal.read(epoch) for epoch in (it.epoch - 2, it.epoch - 1)}
    for epoch, record in kept.items():
        assert record is not None
        it.epochs._commit(epoch, record, None)  # as after a death behind the commit
    assert dict(read_collected(str(it.folder), "totals")) == totals
    assert any(record.dead_letters for record in kept.values() if record is not None)
    assert (tmp_path / "out" / "dead.0.jsonl").read_bytes() == written
