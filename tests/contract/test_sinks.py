"""What every sink has to keep: rows are seen once they are committed, whole, once, whoever commits and how often."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esault.sinks
from esault.payload.codec import Codec
from esault.sinks import Collect, CsvFile, JsonLines, Parquet, SparkTable, read_collected
from esault.sinks.landing import parts
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo, Sink, commits

ROOT = Path(__file__).parents[2]


class Files:
    """JsonLines, and how its rows are read."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "out", "x.jsonl")
        self.run_dir = None

    def make(self, mode="append"):
        return JsonLines(self.path, mode)

    def rows(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path) as file:
            return [(row["key"], row["value"]) for row in map(json.loads, file)]


class CsvRows(Files):
    """CsvFile, and how its rows are read."""

    def make(self, mode="append"):
        return CsvFile(self.path, ("word", "count"), mode)

    def rows(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path, newline="") as file:
            return [(row["word"], int(row["count"])) for row in csv.DictReader(file)]


class Table(Files):
    """SparkTable, and how its rows are read without Spark."""

    sink = SparkTable

    def make(self, mode="append"):
        pytest.importorskip("pyarrow")
        return self.sink(self.path, {"word": str, "count": int}, mode)

    def rows(self):
        pq = pytest.importorskip("pyarrow.parquet")
        found = []
        if os.path.exists(self.path):
            for part in parts(self.path):
                table = pq.read_table(part)
                found += zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True)
        return found


class PlainTable(Table):
    sink = Parquet


class Collected(Files):
    """Collect in the folder of a run."""

    def __init__(self, folder):
        self.run_dir = os.path.join(folder, "run")

    def make(self, mode="append"):
        return Collect()

    def rows(self):
        return read_collected(self.run_dir, "sink")


PLACES = [Files, CsvRows, Table, PlainTable, Collected]
LASTING = [Files, CsvRows, Table, PlainTable]


def opened(place, sub_unit, run="run-1"):
    sink = place.make()
    sink.context = Context("sink", sub_unit=sub_unit, run=run, run_dir=place.run_dir)
    sink.open(sink.context)
    return sink


def begun(place, run="run-1", mode="append", resumed=False):
    driver = place.make(mode)
    driver.check()
    driver.begin(RunInfo(run, "topology", "sink", resumed))
    return driver


def write(sink, *counts):
    sink.write([Row("k", count, 1.0, f"id{count}") for count in counts])


def carried(handle):
    """As it arrives in another process."""
    return Codec().unpack(Codec().pack(handle))


@pytest.mark.parametrize("place", PLACES)
def test_rows_are_seen_when_they_are_committed_and_no_sooner(place, tmp_path):
    place = place(tmp_path)
    driver, sink = begun(place), opened(place, 0)
    assert place.rows() == []
    write(sink, 1, 2)
    assert place.rows() == []
    handle = sink.prepare(1)
    assert place.rows() == []
    sink.commit(1, handle)
    assert place.rows() == [("k", 1), ("k", 2)]
    sink.close()
    driver.end(True)
    assert place.rows() == [("k", 1), ("k", 2)]
    assert commits(sink)


@pytest.mark.parametrize("place", PLACES)
def test_a_commit_may_come_again_from_anyone(place, tmp_path):
    place = place(tmp_path)
    driver, sink = begun(place), opened(place, 0)
    write(sink, 1)
    handle = carried(sink.prepare(1))
    other = opened(place, 1)
    for committing in (other, sink, other, opened(place, 2)):
        committing.commit(1, handle)
    write(other, 2)
    other.commit(2, other.prepare(2))
    sink.commit(1, handle)
    driver.end(True)
    assert sorted(place.rows()) == [("k", 1), ("k", 2)]


@pytest.mark.parametrize("place", PLACES)
def test_an_epoch_without_rows_changes_nothing(place, tmp_path):
    place = place(tmp_path)
    driver, sink = begun(place), opened(place, 0)
    for epoch in (1, 2):
        sink.commit(epoch, carried(sink.prepare(epoch)))
    assert place.rows() == []
    write(sink, 1)
    sink.commit(3, carried(sink.prepare(3)))
    sink.commit(4, carried(sink.prepare(4)))
    driver.end(True)
    assert place.rows() == [("k", 1)]


@pytest.mark.parametrize("place", PLACES)
def test_rows_of_a_process_that_dies_before_the_commit_are_unseen_and_can_still_be_committed(place, tmp_path):
    place = place(tmp_path)
    driver = begun(place)
    receiving, sending = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            sink = opened(place, 0)
            write(sink, 1, 2)
            os.write(sending, Codec().pack(sink.prepare(1)))
            write(sink, 3)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    handle = Codec().unpack(os.read(receiving, 10_000))
    os.close(receiving)
    os.close(sending)
    assert place.rows() == []
    opened(place, 1).commit(1, handle)
    driver.end(True)
    assert place.rows() == [("k", 1), ("k", 2)]


@pytest.mark.parametrize("place", PLACES)
def test_a_sink_that_is_opened_again_forgets_what_was_not_committed(place, tmp_path):
    place = place(tmp_path)
    driver, sink = begun(place), opened(place, 0)
    write(sink, 1)
    sink.commit(1, sink.prepare(1))
    write(sink, 2)
    sink.prepare(2)
    write(sink, 3)
    sink.open(sink.context)
    write(sink, 4)
    sink.commit(3, sink.prepare(3))
    driver.end(True)
    assert place.rows() == [("k", 1), ("k", 4)]


@pytest.mark.parametrize("place", LASTING)
def test_a_run_that_goes_on_adds_to_the_earlier_one_whatever_the_mode(place, tmp_path):
    place = place(tmp_path)
    for mode in ("replace", "error"):
        driver, sink = begun(place, mode="replace"), opened(place, 0)
        write(sink, 1)
        first = carried(sink.prepare(1))
        sink.commit(1, first)
        write(sink, 2)
        second = carried(sink.prepare(2))
        driver.end(False)
        assert place.rows() == [("k", 1)]
        driver, sink = begun(place, "run-2", mode, resumed=True), opened(place, 0, "run-2")
        for handle, epoch in ((first, 1), (second, 2)):
            sink.commit(epoch, handle)
        write(sink, 3)
        sink.commit(3, sink.prepare(3))
        driver.end(True)
        assert sorted(place.rows()) == [("k", 1), ("k", 2), ("k", 3)]


@pytest.mark.parametrize("place", LASTING)
def test_a_new_run_keeps_removes_or_respects_what_is_there(place, tmp_path):
    place = place(tmp_path)
    for number, (mode, expected) in enumerate([("error", [0]), ("append", [0, 1]), ("replace", [2])]):
        run = f"run-{number}"
        driver, sink = begun(place, run, mode), opened(place, 0, run)
        write(sink, number)
        sink.commit(0, sink.prepare(0))
        sink.close()
        driver.end(True)
        assert sorted(place.rows()) == [("k", count) for count in expected]
    for call in (lambda: place.make("error").check(), lambda: begun(place, "run-9", "error")):
        with pytest.raises(esault.errors.SinkError, match=r'mode="append".*mode="replace"'):
            call()
    assert place.rows() == [("k", 2)]


@pytest.mark.parametrize("place", LASTING)
def test_two_runs_at_once_are_refused_and_the_second_harms_nothing(place, tmp_path):
    place = place(tmp_path)
    driver, sink = begun(place), opened(place, 0)
    second = place.make("replace")
    with pytest.raises(esault.errors.SinkError, match=r"another run|being written"):
        second.begin(RunInfo("run-2", "topology", "sink"))
    second.end(False)
    write(sink, 1)
    sink.commit(0, sink.prepare(0))
    driver.end(True)
    assert place.rows() == [("k", 1)]


#: what happens to one of two sub-units: rows come, a commit is prepared, one of the handles so far is committed (by
#: this or a new object), or the process dies and another takes its place
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(["write", "prepare", "commit", "die"]), st.integers(0, 5)), max_size=25
)


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
def test_whatever_happens_each_committed_row_is_there_once(place, steps):
    with tempfile.TemporaryDirectory() as folder:
        place = place(folder)
        driver = begun(place)
        sub_units = [0, 1]
        sinks = [opened(place, 0), opened(place, 1)]
        written = [[], []]
        handles, seen, count = [], set(), 0
        for epoch, (who, what, number) in enumerate(steps):
            sink = sinks[who]
            if what == "write":
                rows = range(count, count + number)
                count += number
                write(sink, *rows)
                written[who] += rows
            elif what == "prepare":
                # all it took and has not shown yet
                handles.append((epoch, who, sub_units[who], carried(sink.prepare(epoch)), set(written[who])))
            elif what == "commit" and handles:
                at, owner, sub_unit, handle, rows = handles[number % len(handles)]
                (sinks[owner] if sub_units[owner] == sub_unit else opened(place, 99)).commit(at, handle)
                seen |= rows
            elif what == "die":
                sub_units[who] = max(sub_units) + 1
                sinks[who] = opened(place, sub_units[who])
                written[who] = []
            assert sorted(place.rows()) == [("k", row) for row in sorted(seen)]
        for sink in sinks:
            sink.close()
        driver.end(True)
        assert sorted(place.rows()) == [("k", row) for row in sorted(seen)]


#: what is called of a sub-unit's sink, or of the driver's: all go back to what is committed, and go on with sinks of their own
HOOKS = st.lists(
    st.sampled_from(["write", "columns", "nothing", "prepare", "commit", "again", "close", "go back"]), max_size=25
)


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=40, deadline=None)
@given(hooks=HOOKS, ok=st.booleans(), number=st.integers(1, 4))
def test_every_hook_may_be_called_wherever_it_is_legal(place, hooks, ok, number):
    with tempfile.TemporaryDirectory() as folder:
        place = place(folder)
        driver, sink, sub_unit = begun(place), opened(place, 0), 0
        count, staged, prepared, seen, last = 0, [], [], [], None
        for epoch, hook in enumerate(hooks):
            if hook == "write":
                rows = [count + i for i in range(number)]
                count, staged = count + number, staged + rows
                write(sink, *rows)
            elif hook == "columns":
                rows = [count + i for i in range(number)]
                count, staged = count + number, staged + rows
                sink.write_columns(["k"] * number, rows, 1.0, [f"id{row}" for row in rows])
            elif hook == "nothing":
                sink.write([])
            elif hook == "prepare":
                prepared.append((epoch, carried(sink.prepare(epoch)), staged))
                staged = []
            elif hook == "commit" and prepared:
                last = prepared.pop(0)
                sink.commit(*last[:2])
                seen += last[2]
            elif hook == "again" and last is not None:
                (sink if number % 2 else driver).commit(*last[:2])
            elif hook in ("close", "go back"):
                if hook == "close" or number % 2:  # else its process is dead
                    sink.close()
                if prepared and number > 2:  # it belongs to the checkpoint that all go back to
                    last = prepared.pop(0)
                    driver.commit(*last[:2])
                    seen += last[2]
                driver.forget_staged()
                sub_unit, staged, prepared = sub_unit + 1, [], []
                sink = opened(place, sub_unit)
            assert sorted(place.rows()) == [("k", row) for row in sorted(seen)], hook
        sink.close()
        driver.end(ok)
        assert sorted(place.rows()) == [("k", row) for row in sorted(seen)]


@pytest.mark.parametrize("place", PLACES)
def test_making_and_checking_a_sink_writes_nothing(place, tmp_path):
    sink = place(tmp_path).make("error")
    assert isinstance(sink, Sink)
    sink.check()
    assert os.listdir(tmp_path) == []


def test_every_sink_in_the_box_stands_here():
    here = {"SparkTable", "Parquet", "JsonLines", "CsvFile", "Collect", "read_collected"}
    assert here | set(esault.sinks._ELSEWHERE) == set(esault.sinks.__all__)
    for place in esault.sinks._ELSEWHERE.values():  # those of servers have tests with them
        folder = place.removeprefix("esault.").rpartition(".")[0].replace(".", "/")
        assert any((ROOT / tests / folder).is_dir() for tests in ("tests", "tests/unit")), folder
