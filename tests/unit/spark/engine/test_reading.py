"""How the driver reads spouts ahead, and what it says when it is asked to drain."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import Columns, Context, EndOfStream, SourceError, Spout, Topology
from esault.flow.operators.user_error import UserError
from esault.payload.codec import Codec
from esault.sinks import Collect
from esault.sources import TextFiles
from esault.spark.engine import batch_size, reader, reading, source, source_part
from esault.spark.engine.offsets import latest, pack_position, publish, start, unpack_position
from esault.spark.engine.reading import Reading
from esault.spark.engine.source import ranges
from tests.unit.spark.engine.flows import endless


def made(folder: Path) -> Reading:
    plan = endless().plan()
    made = Reading(
        plan=plan,
        plans=lambda: endless().plan(),
        run="run",
        run_dir=str(folder),
        folder=folder,
        state=folder,
        offset=start({"numbers": 1}),
    )
    for part in made.parts:
        part.open(made._contexts[0])
    return made


@pytest.mark.parametrize("pause", [False, True])
def test_a_drain_that_is_asked_for_in_mid_step_is_that_of_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: bool
) -> None:
    spouts = made(tmp_path)

    def drains(*arguments: Any) -> None:
        spouts.drain(pause)  # as the driver's thread may, at any time
        publish(*arguments)

    monkeypatch.setattr(reading, "publish", drains)
    assert spouts.step(1.0) and not spouts.over.is_set()
    assert not spouts.step(1.0) and spouts.over.is_set()
    read = latest(tmp_path)
    assert read["end"] is not pause and read["parts"]["numbers"][0][0] == spouts.parts[0].rows > 0


class Watched(Spout[Any, Any]):
    """Says what it was asked; gives what the test has put into `rows`."""

    rows = 0

    def __init__(self, name: str, said: list[Any], broken: bool = False) -> None:
        self.name, self.said, self.broken, self.at = name, said, broken, 0

    def open(self, context: Any) -> None:
        if self.broken:
            raise SourceError("cannot be opened")
        self.said.append((self.name, "open"))

    def read(self, limit: int) -> Any:
        if self.at >= type(self).rows:
            raise EndOfStream
        self.at += 1
        return [(self.name, self.at)]

    def position(self) -> Any:
        return self.at

    def seek(self, position: Any) -> None:
        self.at = position

    def commit(self, position: Any) -> None:
        self.said.append((self.name, "commit", position))

    def close(self) -> None:
        self.said.append((self.name, "close"))
        raise OSError("it had gone")


class Poured(Watched):
    """Cannot seek."""

    position = Spout.position  # type: ignore[assignment]
    seek = Spout.seek  # type: ignore[assignment]


def watched(folder: Path, offset: Any, **spouts: Watched) -> Reading:
    t = Topology("watched")
    for name, spout in spouts.items():
        t.spout(name, spout).sink(f"{name}-rows", Collect())
    plan = t.plan()
    return Reading(
        plan=plan, plans=lambda: plan, run="run", run_dir=str(folder), folder=folder, state=folder, offset=offset
    )


def test_a_spout_hears_of_the_last_commit_before_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Watched, "rows", 1)
    said: list[Any] = []
    spouts = watched(tmp_path, start({"a": 1}), a=Watched("a", said))
    spouts.open()
    spouts.start()
    assert spouts.over.wait(10)
    position = spouts.parts[0].state()[1]
    spouts.processed({("a", 0): (1, unpack_position(position))}, 1.0)
    spouts.stop()  # at once, as where the last batch is committed
    assert said == [("a", "open"), ("a", "commit", 1), ("a", "close")]
    assert spouts.failure is None and "unit 'a', close: OSError: it had gone" in capsys.readouterr().err


class Queue(Watched):
    """A queue in a database whose connection is of the thread that has made it."""

    def open(self, context: Any) -> None:
        self.database = sqlite3.connect(":memory:")

    def read(self, limit: int) -> Any:
        self.database.execute("select 1")
        return super().read(limit)

    def close(self) -> None:
        self.database.close()
        self.said.append((self.name, "close"))


def test_one_thread_opens_reads_and_closes_a_spout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Watched, "rows", 1)
    said: list[Any] = []
    spouts = watched(tmp_path, start({"a": 1}), a=Queue("a", said))
    spouts.open()
    spouts.start()
    assert spouts.over.wait(10)
    spouts.stop()
    assert spouts.failure is None and said[-1] == ("a", "close") and not capsys.readouterr().err


def test_spouts_that_were_opened_and_never_read_are_closed(tmp_path: Path) -> None:
    said: list[Any] = []
    spouts = watched(tmp_path, start({"a": 1}), a=Queue("a", said))
    spouts.open()
    spouts.stop()
    assert said == [("a", "close")]


def test_what_was_opened_is_closed_where_another_cannot_be(tmp_path: Path) -> None:
    said: list[Any] = []
    spouts = watched(tmp_path, start({"a": 1, "b": 1}), a=Watched("a", said), b=Watched("b", said, broken=True))
    with pytest.raises(UserError, match="unit 'b': cannot be opened"):
        spouts.open()
    assert ("a", "close") in said


def test_a_run_that_goes_on_asks_again_what_had_ended_and_can_seek(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watched, "rows", 2)
    said: list[Any] = []
    offset = start({"a": 1, "b": 1})
    offset["parts"] = {"a": [[1, "AQ==", True, []]], "b": [[1, "kgAA", True, []]]}  # 1; (0, 0), of a spool
    spouts = watched(tmp_path, offset, a=Watched("a", said), b=Poured("b", said))
    spouts.open()
    spouts.start()
    assert spouts.over.wait(10)
    spouts.stop()
    read = latest(tmp_path)
    assert (read["parts"]["a"][0][0], read["parts"]["b"][0][0], read["end"]) == (2, 1, True)
    assert spouts.failure is None and {name for name, *_ in said} == {"a"}


@pytest.mark.parametrize("pause", [False, True])
def test_what_was_read_is_told_when_it_is_due_and_before_the_end(tmp_path: Path, pause: bool) -> None:
    spouts = made(tmp_path)
    for _ in range(3):
        assert spouts.step(1.0, tell=False)
    assert not (tmp_path / "latest.json").exists()
    assert spouts.step(1.0)
    told = latest(tmp_path)["parts"]["numbers"][0][0]
    assert told == spouts.parts[0].rows > 0
    assert spouts.step(1.0, tell=False) and spouts.parts[0].rows > told
    spouts.drain(pause)
    spouts.step(1.0, tell=False)
    assert latest(tmp_path)["parts"]["numbers"][0][0] == spouts.parts[0].rows and spouts.over.is_set()


class Numbered(Spout[Any, Any]):
    """So many rows, at most `most` of them at a time."""

    def __init__(self, rows: int, most: int) -> None:
        self.rows, self.most, self.at = rows, most, 0

    def read(self, limit: int) -> Any:
        if self.at >= self.rows:
            raise EndOfStream
        first, self.at = self.at, min(self.rows, self.at + min(limit, self.most))
        return [(row, row) for row in range(first, self.at)]

    def position(self) -> Any:
        return self.at

    def seek(self, position: Any) -> None:
        self.at = position


def numbered(folder: Path, *spouts: Numbered) -> Reading:
    names = [f"n{number}" for number, _ in enumerate(spouts)]
    t = Topology("numbered")
    for name, spout in zip(names, spouts):
        t.spout(name, spout).sink(f"{name}-rows", Collect())
    plan = t.plan()
    made = Reading(
        plan=plan,
        plans=lambda: plan,
        run="run",
        run_dir=str(folder),
        folder=folder,
        state=folder,
        offset=start(dict.fromkeys(names, 1)),
    )
    made.open()
    return made


def told(reading: Reading) -> dict[str, int]:
    return {name: parts[0][0] for name, parts in reading._offset["parts"].items()}


def test_the_next_batch_is_read_while_one_is_processed_and_told_when_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_part, "AHEAD_ROWS", 0)
    monkeypatch.setattr(batch_size, "FIRST", 100)
    spouts = numbered(tmp_path, Numbered(1000, 10))
    while spouts.step(1.0):
        pass
    assert told(spouts) == {"n0": 100} and spouts.waiting("n0") == 225  # and what the last one may have more
    assert spouts._offset["parts"]["n0"][0][1] == pack_position(Codec().pack_value(100))
    spouts.processed({("n0", 0): (100, None)})
    spouts.step(1.0)
    assert told(spouts) == {"n0": 200} and spouts.waiting("n0") == 135
    for worked, grown in ((2.0, 2), (1.0, 8)):
        done = told(spouts)["n0"]
        spouts.processed({("n0", 0): (done, None)}, 5.0, (worked, worked))
        while spouts.step(1.0):
            pass
        assert 0 <= min(1000, done + 100 * grown) - told(spouts)["n0"] < 10  # as many whole reads as fit


def test_a_block_that_is_larger_than_a_batch_goes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_size, "FIRST", 5)

    class Blocks(Numbered):
        def read(self, limit: int) -> Any:
            return super().read(20)

    spouts = numbered(tmp_path, Blocks(100, 20))
    for batch in range(1, 6):
        while spouts.step(1.0):
            pass
        assert told(spouts) == {"n0": 20 * batch}
        spouts.processed({("n0", 0): (20 * batch, None)})
    spouts.step(1.0)
    assert spouts.ending


def test_what_is_read_waits_a_moment_for_more_that_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_part, "AHEAD_ROWS", 0)
    monkeypatch.setattr(batch_size, "FIRST", 100)
    spouts = numbered(tmp_path, Numbered(1000, 10))
    soon, late = 7.0 + reading.HOLD / 2, 7.0 + 2 * reading.HOLD
    spouts.step(1.0, tell=False)
    assert spouts.waits(7.0, True) and spouts.waits(soon, True) and not spouts.waits(late, True)
    assert not spouts.waits(soon, False)  # nothing more comes
    for _ in range(9):
        spouts.step(1.0, tell=False)
    assert not spouts.waits(soon, True)  # a batch is whole
    while spouts.step(1.0):
        pass
    spouts.processed({("n0", 0): (100, None)}, 1.0, (2.0, 2.0))
    # The next batch may be larger than what was read by then: it waits anew, though the last step read nothing.
    assert spouts.waits(late, False) and not spouts.waits(late, False)
    spouts.step(1.0, tell=False)
    assert spouts.waits(late, True) and not spouts.waits(late + reading.HOLD, True)


def test_what_is_read_waits_longer_where_a_whole_batch_will_soon_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_size, "FIRST", 100)
    spouts = numbered(tmp_path, Numbered(1000, 10))
    spouts.step(1.0, tell=False)
    assert spouts.waits(7.0, True)
    for _ in range(4):  # 40 tuples in 0.4 s: the other 50 take 0.5 s
        spouts.step(1.0, tell=False)
    assert spouts.waits(7.4, True) and not spouts.waits(7.7, True)
    assert not spouts.waits(7.4, False)


def test_what_the_next_batch_may_have_is_read_while_a_batch_is_processed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_part, "AHEAD_ROWS", 0)
    monkeypatch.setattr(batch_size, "FIRST", 100)
    spouts = numbered(tmp_path, Numbered(100_000, 1000))
    while spouts.step(1.0):
        pass
    assert spouts.parts[0].rows == 225  # nothing is known of what a tuple takes
    spouts.processed({("n0", 0): (100, None)}, 0.5, (0.001, 0.001))
    while spouts.step(1.0):
        pass
    first, then = spouts.size.rows, spouts.size.next_rows
    assert first < then and spouts.parts[0].rows == min(100_000, 100 + first + then + then // 4)
    assert first - 1000 < told(spouts)["n0"] - 100 <= first  # as many whole reads as fit


def test_all_workers_read_from_the_first_batch_on(tmp_path: Path) -> None:
    """What was read before it was known how many tuples a batch has is divided among them, too."""
    spouts = numbered(tmp_path, Numbered(100_000, 2048))
    while spouts.step(1.0):
        pass
    before = spouts._offset
    assert [frame[5] for frame in ranges(start({"n0": 1}), before, 2)] == [batch_size.FIRST // 2] * 2
    spouts.processed({("n0", 0): (batch_size.FIRST, None)}, 1.0, (0.2, 0.2))
    while spouts.step(1.0):
        pass
    sizes = [frame[5] for frame in ranges(before, spouts._offset, 2)]
    assert len(sizes) == 2 and sum(sizes) > 1000 and max(sizes) < 1.3 * min(sizes)


@pytest.mark.parametrize(("rows", "batches"), [(125, [125]), (126, [100, 126]), (230, [100, 200, 230])])
def test_what_is_left_for_a_small_last_batch_goes_with_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, batches: list[int]
) -> None:
    monkeypatch.setattr(batch_size, "FIRST", 100)
    spouts, found = numbered(tmp_path, Numbered(rows, 1)), []
    while not spouts.ending:
        while spouts.step(1.0, tell=False):
            pass
        spouts.step(1.0)
        found.append(told(spouts)["n0"])
        spouts.processed({("n0", 0): (found[-1], None)})
    assert found == batches


@pytest.mark.parametrize("pause", [False, True])
def test_a_source_that_can_be_read_again_is_read_far_ahead_and_a_drain_leaves_what_was_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: bool
) -> None:
    monkeypatch.setattr(batch_size, "FIRST", 100)
    monkeypatch.setattr(source_part, "AHEAD_ROWS", 1000)
    spouts = numbered(tmp_path, Numbered(5000, 10))
    while spouts.step(1.0):
        pass
    assert told(spouts) == {"n0": 100} and spouts.waiting("n0") == 1000
    spouts.drain(pause)
    spouts.step(1.0)
    # What the next two batches could have had, as if no more had been read.
    assert spouts.over.is_set() and spouts.ending is not pause
    assert told(spouts) == {"n0": 200} and spouts.waiting("n0") == 200
    assert spouts._offset["parts"]["n0"][0][1] == pack_position(Codec().pack_value(200))


def test_a_source_that_had_ended_and_was_not_told_to_its_end_is_not_over_after_a_drain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_size, "FIRST", 100)
    spouts = numbered(tmp_path, Numbered(500, 10))
    while spouts.step(1.0):
        pass
    assert spouts.parts[0].ended and not spouts.ending
    spouts.drain(pause=True)
    spouts.step(1.0)
    assert told(spouts) == {"n0": 200} and not spouts.ending and not spouts._offset["parts"]["n0"][0][2]


def test_what_cannot_be_read_again_is_read_two_batches_ahead_and_told_whole_at_a_drain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_size, "FIRST", 100)

    class Unsought(Numbered):
        position = Spout.position  # type: ignore[assignment]
        seek = Spout.seek  # type: ignore[assignment]

    spouts = numbered(tmp_path, Unsought(5000, 10))
    while spouts.step(1.0):
        pass
    assert told(spouts) == {"n0": 100} and spouts.waiting("n0") == 200
    spouts.drain(pause=False)
    spouts.step(1.0)
    assert told(spouts) == {"n0": 200}
    spouts.stop()


def test_how_often_it_is_told_follows_from_the_processor_not_from_what_was_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*arguments: Any) -> None:
        time.sleep(0.2)
        publish(*arguments)

    monkeypatch.setattr(reading, "publish", slow)
    spouts = numbered(tmp_path, Numbered(1000, 10))
    spouts.step(1.0)
    assert 0.0 < spouts._telling < 0.2


def test_how_far_a_source_is_follows_what_was_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_size, "FIRST", 100)

    class Measured(Numbered):
        def progress(self) -> Any:
            return float(self.at), 500.0

    spouts = numbered(tmp_path, Measured(500, 10))
    while spouts.step(1.0):
        pass
    assert spouts.waiting("n0") == 500 and spouts.progress("n0") == (100.0, 500.0)


@given(
    sizes=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 40)), min_size=1, max_size=3),
    ahead=st.integers(1, 60),
    moves=st.lists(st.tuples(st.sampled_from(["step", "held", "done"]), st.floats(0.1, 9.0)), max_size=60),
    draining=st.booleans(),
)
def test_what_is_told_are_whole_reads_with_their_positions_no_more_than_a_batch_has(
    sizes: list[tuple[int, int]], ahead: int, moves: list[tuple[str, float]], draining: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_size, "FIRST", ahead)
        spouts = numbered(Path(folder), *[Numbered(*size) for size in sizes])
        done = told(spouts)
        for what, seconds in moves:
            before = told(spouts)
            if what == "done":
                done = before
                spouts.processed({(name, 0): (rows, None) for name, rows in done.items()}, 1.0, (seconds, seconds))
                continue
            spouts.step(1.0, tell=what == "step")
            for name, ((rows, position, ended, marks),) in spouts._offset["parts"].items():
                assert (
                    before[name]
                    <= rows
                    <= max(before[name], done[name] + max(spouts.size.rows, sizes[int(name[1:])][1]))
                )
                assert position == (pack_position(Codec().pack_value(rows)) if rows else None)
                assert all(row <= rows for row, _, _ in marks)
                size = sizes[int(name[1:])][0]
                assert not ended or rows == size
        if draining:
            spouts.drain(pause=False)
            spouts.step(1.0)
            assert told(spouts) == {part.unit: part.rows for part in spouts.parts}
        while not spouts.over.is_set():
            spouts.processed({(name, 0): (rows, None) for name, rows in told(spouts).items()}, 1.0)
            spouts.step(1.0)
        assert spouts.ending and (draining or list(told(spouts).values()) == [rows for rows, _ in sizes])


def test_parts_of_a_slow_batch_are_divided_over_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_size, "FIRST", 100)
    spouts = numbered(tmp_path, Numbered(1000, 1000))
    spouts.step(1.0)
    spouts.processed({("n0", 0): (100, None)}, 5.0, (4.0, 4.0))
    while spouts.step(1.0):
        pass
    (after,) = spouts._offset["parts"]["n0"]
    rows = [piece[2] for piece in source.divided([100, after[1], False, []], after, 4)]
    assert sum(rows) == after[0] - 100 and len(rows) == 4 and max(rows) <= sum(rows) / 3


def test_a_batch_begins_every_so_many_seconds_or_when_a_whole_one_waits(tmp_path: Path) -> None:
    spouts = numbered(tmp_path, Numbered(1000, 10))
    spouts._opens = 60.0
    spouts.step(1.0, tell=False)
    assert spouts.shut(59.0) and not spouts.shut(60.0)
    while spouts.parts[0].rows < batch_size.FIRST:
        assert spouts.shut(59.0)
        spouts.step(1.0, tell=False)
    assert not spouts.shut(59.0)


class Few(TextFiles):
    """A few lines at a time, by the hook that the engine asks."""

    def read_columns(self, limit):
        return super().read_columns(min(limit, 7))


def test_lines_are_read_as_columns_and_filled_up_where_a_source_gives_fewer(tmp_path: Path) -> None:
    lines = [f"line {i}" for i in range(900)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    spout = Few(str(tmp_path / "a.txt"))
    spout.open(Context("lines"))
    found = reader._read_full(spout, "lines", 800)
    spout.close()
    assert isinstance(found, Columns)
    assert list(found.values) == lines[:800] and set(found.keys) == {str(tmp_path / "a.txt")}
