"""Bench real: the engines put out the same rows, for real, on the smallest loads; what is measured decides nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import depth
import pytest

from bench.real import run, seen, tables
from bench.real.run import ESAULT, PLAIN, DifferenceError, Work
from bench.real.workloads import WORKLOADS, difference

ROOT = Path(__file__).parents[2]
SHARE = 0.0005
#: the flow of "bytewax, 1 worker" in two Pythons: in the deep run
TWICE = "bytewax, 2 processes"


def work_of(name, folder, share=SHARE):
    """A workload with its data; skips where it cannot run."""
    workload = WORKLOADS[name]
    if why := workload.missing():
        pytest.skip(why)
    data = folder / "input"
    data.mkdir()
    return Work(workload, data, workload.make(data, share), share)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", depth.chosen(WORKLOADS, ("words_landed",)))
def test_engines_put_out_the_rows_of_the_plain_loop(name, tmp_path):
    work = work_of(name, tmp_path)
    _, right = work.checked(PLAIN)
    assert any(right)
    for engine, why in work.engines.items():
        if why is None and (depth.PROFILE == "deep" or engine != TWICE):
            figures, found = work.checked(engine)
            work.compare(engine, right, found)
            assert figures["rows"] == sum(map(len, right))
            assert figures["first_row_seconds"] > 0
            assert figures["processor_seconds"] > 0
    assert [each.name for each in tmp_path.iterdir()] == ["input"]


@pytest.mark.slow
def test_a_plain_loop_that_ends_with_an_error_is_said(tmp_path):
    work = work_of("steps", tmp_path)
    first = Path((work.data / "files.txt").read_text().splitlines()[0])
    first.write_text("no number\n")
    with pytest.raises(RuntimeError, match="steps on plain loop failed, with 1:[^$]*no number"):
        work.measured(PLAIN)


@pytest.mark.slow
def test_the_time_of_orphans_is_counted():
    burn = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {burn!r}])"
    command = [sys.executable, "-m", "bench.real.launcher", "--weigh", sys.executable, "-c", parent]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    cost = json.loads(done.stdout.splitlines()[-1])
    assert cost["code"] == 0
    assert cost["left"] == []
    assert cost["waited_seconds"] >= 0.5
    assert cost["pss_mib"] > 0


@pytest.mark.parametrize("equal", ["final", "rows"])
def test_rows_in_another_order_are_no_difference(equal):
    right = [("a", 1), ("b", 1), ("a", 2)]
    assert difference(equal, right, [right[2], right[1], right[0]]) is None


@pytest.mark.parametrize(
    ("equal", "found", "said"),
    [
        ("rows", [("a", 1), ("b", 1)], "2 rows in place of 3"),
        ("rows", [("a", 2), ("b", 1), ("a", 2)], "1 for ('a', 2)|None for ('a', 1)"),
        ("final", [("a", 1), ("b", 1), ("a", 3)], "3 for 'a' in place of 2"),
    ],
)
def test_another_row_is_a_difference(equal, found, said):
    text = difference(equal, [("a", 1), ("b", 1), ("a", 2)], found)
    assert text is not None
    assert any(part in text for part in said.split("|"))


def test_a_difference_names_work_and_engine(tmp_path):
    work = Work(WORKLOADS["steps"], tmp_path, 1, SHARE)
    with pytest.raises(DifferenceError, match="steps: esault differs from the plain loop"):
        work.compare(ESAULT, [[("a", 1)]], [[("a", 2)]])


def test_a_store_says_what_came_and_keeps_it(tmp_path):
    for rows in ([("a", 1), ("b", "x" * 5000)], []):
        store = seen.Store(tmp_path, check=True)
        if rows:
            store.take(rows)
            store.take(rows[:1])
        store.close()
    times = seen.times(tmp_path)
    assert (times["rows"], times["first_rows"]) == (3, 2)
    assert times["first"] <= times["last"]
    kept = seen.kept(tmp_path)
    assert kept[0] == kept[2] == ("a", 1)
    assert kept[1][1] != "x" * 5000  # its checksum


def test_no_rows_are_an_error(tmp_path):
    seen.Store(tmp_path, check=False).close()
    with pytest.raises(RuntimeError, match="no rows came out"):
        seen.times(tmp_path)


def test_a_table_is_read_as_it_was_written(tmp_path):
    pytest.importorskip("pyarrow")
    rows = [("a", (1, 2, 3)), ("b", (4, 5, 6))]
    with tables.Table(tmp_path, tables.LINES) as table:
        table.take(rows)
    assert tables.rows(tmp_path) == rows
    times = tables.times([tmp_path])
    assert (times["rows"], times["first_rows"]) == (2, 2)


def test_a_work_that_is_not_there_is_refused(tmp_path):
    command = [sys.executable, "-m", "bench.real", "--out", str(tmp_path), "--only", "nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no 'nothing'; write some of: words, words_landed" in done.stderr


def test_without_bytewax_its_column_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "missing", lambda name: f"skipped: {name} is not installed")
    engines = Work(WORKLOADS["steps"], tmp_path, 1, SHARE).engines
    assert engines[ESAULT] is engines[PLAIN] is None
    assert engines["bytewax, 1 worker"] == engines["bytewax, 2 processes"] == "skipped: bytewax is not installed"
