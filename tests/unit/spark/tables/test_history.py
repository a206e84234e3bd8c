"""The history of runs: what is written while they go on and at their end, what a crash leaves, and the sums over all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from esault.spark.clean import Cleaned
from esault.spark.tables.expectations import Checked, ExpectationFailed
from esault.spark.tables.history import History, append_line, history_of, quality_of, runs_in
from esault.spark.tables.step import Updated


@dataclass
class Clock:
    at: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.at


def updated(checked: int, failed: int, why: str | None = None) -> Updated:
    found = {"some pieces": ("quarantine", failed)}
    return Updated("sold", checked, checked - failed, 50, why, found, checked, failed, (), 1.0, 3)


def run(into: Path, *outcomes: Updated, end: bool = True) -> History:
    history = History(str(into), Clock())
    history.begin()
    for outcome in outcomes:
        history.ended("table:sold", outcome, 1.0, None)
    if end:
        history.end()
    return history


def sums(into: Path) -> list[tuple[object, ...]]:
    return list(quality_of(str(into)).rows)


def test_a_run_is_one_line_once_it_is_over(tmp_path: Path) -> None:
    clock = Clock()
    history = History(str(tmp_path), clock)
    history.begin()
    clock.at += 2.5
    history.ended("table:sold", updated(10, 3), 2.5, None)
    (going_on,) = runs_in(str(tmp_path))
    assert (going_on["ok"], going_on["seconds"], len(going_on["jobs"])) == (None, 2.5, 1)
    clock.at += 1
    history.ended("table:totals", updated(7, 0), 1.0, None)
    assert [job["job"] for job in runs_in(str(tmp_path))[0]["jobs"]] == ["table:sold", "table:totals"]
    history.end()
    (over,) = runs_in(str(tmp_path))
    assert (over["ok"], over["seconds"], over["began"]) == (True, 3.5, "2027-01-15T08:00:00Z")
    assert [job["job"] for job in over["jobs"]] == ["table:sold", "table:totals"]
    (row,) = history_of(str(tmp_path)).rows
    assert row[2:] == (17, 14, 3, "sold, totals", "ok")


def test_runs_that_found_nothing_to_do_are_not_written_down(tmp_path: Path) -> None:
    history = run(tmp_path)
    history.ended("table:sold", None, 1.0, None)
    history.end()
    assert runs_in(str(tmp_path)) == [] and history_of(str(tmp_path)).rows == ()


def test_a_run_that_was_killed_is_in_the_sums_with_the_jobs_that_were_done(tmp_path: Path) -> None:
    run(tmp_path, updated(10, 3), updated(5, 1), end=False)
    run(tmp_path, updated(4, 0))
    assert [len(one["jobs"]) for one in runs_in(str(tmp_path))] == [2, 1]
    assert [row[-1] for row in history_of(str(tmp_path)).rows] == ["ok", "not yet, or killed"]
    assert sums(tmp_path) == [("sold", "some pieces", "quarantine", 19, 4, 78.947, 4, 0)]


def test_rows_are_counted_anew_where_a_table_was_made_anew(tmp_path: Path) -> None:
    run(tmp_path, updated(100, 30, "it is the first time"))
    run(tmp_path, updated(10, 1))
    assert sums(tmp_path)[0][3:] == (110, 31, 71.818, 10, 1)
    run(tmp_path, updated(200, 20, "it was asked for"))
    assert sums(tmp_path)[0][3:] == (200, 20, 90.0, 200, 20)


def test_rows_of_a_run_that_they_failed_are_told_and_not_added(tmp_path: Path) -> None:
    run(tmp_path, updated(100, 0, "it is the first time"))
    history = History(str(tmp_path), Clock())
    history.begin()
    error = ExpectationFailed("3 rows", Checked(8), {"some pieces": ("quarantine", 3)})
    history.ended("table:sold", None, 0.5, error)
    assert len(runs_in(str(tmp_path))) == 1, "an error is written with its run"
    history.end(error)
    assert runs_in(str(tmp_path))[1]["error"] == "ExpectationFailed: 3 rows"
    assert sums(tmp_path)[0][3:] == (100, 0, 100.0, 8, 3)


def test_clean_tables_are_counted_and_have_no_expectations_by_name(tmp_path: Path) -> None:
    history = History(str(tmp_path), Clock())
    history.begin()
    history.ended(
        "clean:sales", Cleaned(read=9, kept=6, repeats=1, quarantined=2, why="it is the first time"), 1.0, None
    )
    history.end()
    (row,) = history_of(str(tmp_path)).rows
    assert row[2:] == (9, 6, 2, "", "ok") and sums(tmp_path) == []


def test_a_line_that_a_full_disk_cut_off_costs_no_other(tmp_path: Path) -> None:
    run(tmp_path, updated(10, 3))
    path = tmp_path / "history.jsonl"
    with path.open("a") as file:
        file.write('{"run": "cut o')
    run(tmp_path, updated(5, 0))
    assert [one["ok"] for one in runs_in(str(tmp_path))] == [True, True]
    assert path.read_text().splitlines()[-3] == '{"run": "cut o'


def test_lines_stand_behind_each_other_in_a_folder_that_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "lines.jsonl"
    for value in ({"n": 1}, {"n": 2}):
        append_line(str(path), value)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"n": 1}, {"n": 2}]


def test_the_history_shows_the_last_runs_the_newest_first(tmp_path: Path) -> None:
    for read in range(1, 6):
        run(tmp_path, updated(read, 0))
    assert [row[2] for row in history_of(str(tmp_path), 3).rows] == [5, 4, 3]
