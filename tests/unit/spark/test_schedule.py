"""When a pipeline runs again, and what is written down of its runs; time is passed in."""

from __future__ import annotations

import contextlib
import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from esault.cli.repeated_runs import repeat_runs
from esault.errors import EsaultError, UsageError
from esault.sinks.landing.lock import HeldError
from esault.sinks.spark_table import SparkTable
from esault.spark.jobs import Outcome
from esault.spark.results import Results
from esault.spark.tables.declared import Tables
from esault.spark.tables.expectations import ExpectationFailed, Expectations
from esault.spark.tables.history import History, append_line, history_of, quality_of, runs_in
from esault.spark.tables.runs import Runs
from esault.spark.tables.schedule import AtTimes, Every, Landed, repeat
from esault.spark.tables.step import TableStep, Updated
from esault.topology.context import Context
from esault.topology.sink import RunInfo


def test_what_comes_due_while_a_run_lasts_is_one_run() -> None:
    every = Every(10)
    assert [now for now in range(0, 60, 3) if every.due(now)] == [0, 12, 21, 30, 42, 51]
    every = Every(10)
    assert [every.due(now) for now in (0, 35, 36, 40)] == [True, True, False, True]
    cron = AtTimes("*/5 * * * *", 1.0)
    assert [now for now in range(0, 1000, 20) if cron.due(now)] == [300, 600, 900]
    cron = AtTimes("*/5 * * * *", 1.0)
    assert [cron.due(now) for now in (1000, 1001, 1200)] == [True, False, True]


def writers(path: Path) -> tuple[SparkTable, SparkTable]:
    """The sink of the driver, and that of a sub-unit."""
    driver, sink = (SparkTable(path, {"a": str}, "append") for _ in range(2))
    driver.check()
    driver.begin(RunInfo("r", "topology", "t"))
    sink.open(Context("u", run="r"))
    return driver, sink


def test_a_landing_is_a_run_also_of_a_table_that_was_not_there(tmp_path: Path) -> None:
    landed = Landed([str(tmp_path / "t")])
    assert not landed.due(0)
    driver, sink = writers(tmp_path / "t")
    assert not landed.due(0)  # it is there, and has no row
    sink.write_columns(["x"], [()], 1.0, ["i"])
    sink.commit(0, sink.prepare(0))
    assert [landed.due(0), landed.due(0)] == [True, False]
    driver.end(True)


def test_repeat_ends_with_what_is_raised() -> None:
    clock, ran = [0.0], []

    def wait(seconds: float) -> None:
        clock[0] += seconds
        if clock[0] > 25:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repeat(lambda: ran.append(clock[0]), Every(10), lambda: clock[0], wait)
    assert ran == [0, 10, 20]


def test_a_run_that_could_not_begin_is_due_still() -> None:
    clock, ran = [0.0], []

    def wait(seconds: float) -> None:
        clock[0] += seconds
        if clock[0] > 15:
            raise KeyboardInterrupt

    def run() -> float | None:
        ran.append(clock[0])
        return 0.0 if len(ran) < 4 else None

    with pytest.raises(KeyboardInterrupt):
        repeat(run, Every(10), lambda: clock[0], wait)
    assert ran == [0, 1, 2, 3, 10]


class Mended(Exception):
    """All that the test wants has happened."""


def repeated(errors: list[Exception | None], schedule: Any) -> list[float]:
    """The seconds at which runs began, which end with these errors."""
    clock, began, left = [0.0], [], iter(errors)

    def run() -> None:
        began.append(clock[0])
        error = next(left, Mended())
        if error is not None:
            raise error if not isinstance(error, Mended) else KeyboardInterrupt

    def wait(seconds: float) -> None:
        clock[0] += seconds

    runs = SimpleNamespace(pipeline=SimpleNamespace(kept_session=contextlib.nullcontext))
    repeat_runs(runs, schedule, run, {}, lambda: clock[0], wait)  # type: ignore[arg-type]
    return began


class Once:
    """Due at the first look, and again 1000 seconds later."""

    def due(self, now: float) -> bool:
        return now in (0.0, 1000.0)


def test_a_run_that_fails_is_tried_again_ever_later_though_nothing_lands(capsys: Any) -> None:
    lost = [EsaultError("executor lost")] * 4
    assert repeated([*lost, None, *lost[:1]], Once()) == [0, 1, 3, 7, 15, 1000, 1001]
    assert "this run failed: executor lost\ntried again in 8 s\n" in capsys.readouterr().err


def test_what_lands_while_a_run_waits_for_its_next_try_is_that_same_run() -> None:
    class Always:
        def due(self, now: float) -> bool:
            return True

    assert repeated([EsaultError("executor lost")] * 3, Always()) == [0, 1, 3, 7]


def test_the_seconds_between_two_tries_end_to_grow() -> None:
    began = repeated([EsaultError("executor lost")] * 12, Once())
    assert [b - a for a, b in itertools.pairwise(began)][7:] == [128, 256, 300, 300, 300]


def test_an_error_of_the_file_is_traced_once_and_tried_again(capsys: Any) -> None:
    error = KeyError("no such column")
    assert repeated([error, error], Once()) == [0, 1, 3]
    said = capsys.readouterr().err
    assert (said.count("Traceback"), said.count("this run failed: KeyError: ")) == (1, 2)


def test_rows_that_must_not_come_wait_for_the_next_landing() -> None:
    assert repeated([ExpectationFailed("rows")], Once()) == [0, 1000]


def test_a_run_that_another_analysis_keeps_out_is_none(tmp_path: Path) -> None:
    into = tmp_path / "into"
    driver, sink = writers(tmp_path / "t")
    sink.write_columns(["x"], [()], 1.0, ["i"])
    sink.commit(0, sink.prepare(0))
    driver.end(True)
    runs = Runs("p", {"t": str(tmp_path / "t")}, str(into))
    into.mkdir()
    with (
        runs.pipeline._locked(),
        pytest.raises(HeldError, match=r"another analysis writes into .*into: esault analyze"),
    ):
        Runs("p", {"t": str(tmp_path / "t")}, str(into)).run()
    assert runs_in(str(into)) == []


def updated(**members: Any) -> Updated:
    made: dict[str, Any] = {"name": "sold", "read": 10, "written": 8, "rows": 8, "why": None, "checked": 10}
    made |= {"expectations": {"e": ("drop", 2)}, "quarantined": 0, "schema": (), "seconds": 1.0, "version": 3}
    return Updated(**{**made, **members})


def test_runs_are_written_down_and_quality_is_their_sum(tmp_path: Path) -> None:
    clock = [100.0]
    history = History(str(tmp_path), lambda: clock[0])
    for outcome in (updated(why="it is the first time"), updated(), None):
        history.begin()
        history.ended("table:sold", outcome, 1.0, None)
        clock[0] += 5
        history.end()
    history.begin()
    history.ended("table:sold", None, 1.0, EsaultError("disk"))
    history.end(EsaultError("disk"))
    with open(tmp_path / "history.jsonl", "a") as file:
        file.write('{"run": "cut')
    append_line(
        str(tmp_path / "history.jsonl"), {"run": "x", "began": "", "seconds": 1, "ok": True, "error": None, "jobs": []}
    )
    assert [run["run"] for run in runs_in(str(tmp_path))][-1] == "x"
    rows = history_of(str(tmp_path)).rows
    assert [row[1:] for row in rows[1:]] == [
        (0.0, 0, 0, 0, "sold", "EsaultError: disk"),
        (5.0, 10, 8, 0, "sold", "ok"),
        (5.0, 10, 8, 0, "sold", "ok"),
    ]
    assert quality_of(str(tmp_path)).rows == (("sold", "e", "drop", 20, 4, 80.0, 10, 2),)
    assert (
        json.loads((tmp_path / "history.jsonl").read_text().splitlines()[0])["jobs"][0]["why"] == "it is the first time"
    )


def test_jobs_of_a_run_that_was_killed_are_counted_once(tmp_path: Path) -> None:
    into, clock = str(tmp_path), [0.0]
    killed = History(into, lambda: clock[0])
    killed.begin()
    for seconds, table in ((3.0, "sold"), (7.0, "by_product")):
        clock[0] = seconds
        killed.ended(f"table:{table}", updated(name=table), 1.0, None)
    assert [row[1:] for row in history_of(into).rows] == [(7.0, 20, 16, 0, "sold, by_product", "not yet, or killed")]
    again = History(into, lambda: 10.0)
    again.begin()
    again.ended("table:sold", updated(read=5, checked=5, expectations={"e": ("drop", 1)}), 1.0, None)
    again.end()
    assert [(run["ok"], len(run["jobs"])) for run in runs_in(into)] == [(None, 2), (True, 1)]
    assert quality_of(into).rows == (
        ("sold", "e", "drop", 15, 3, 80.0, 5, 1),
        ("by_product", "e", "drop", 10, 2, 80.0, 10, 2),
    )


def test_quality_says_of_a_run_that_rows_let_fail_what_it_found_there(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    found = Expectations("sold", {"e": ("drop", "a > 1"), "f": ("fail", "b > 1")})
    for counts in ({"rows": 10, "failed0": 2, "failed1": 0}, {"rows": 4, "failed0": 1, "failed1": 3}):
        history.begin()
        try:
            checked = found.checked(counts)
        except ExpectationFailed as error:
            assert "f (b > 1): 3 rows. Nothing was changed" in str(error)
            history.ended("table:sold", None, 1.0, error)
            history.end(error)
        else:
            made = updated(checked=10, expectations=found.actions(checked.failed))
            history.ended("table:sold", made, 1.0, None)
            history.end()
    # rows that did not come into the table are in no sum: the next run has them again
    assert quality_of(str(tmp_path)).rows == (
        ("sold", "e", "drop", 10, 2, 80.0, 4, 1),
        ("sold", "f", "fail", 10, 0, 100.0, 4, 3),
    )


def test_a_backfill_that_fails_is_written_down(tmp_path: Path) -> None:
    tables = Tables(["t"])

    @tables.table
    def sold(t: Any) -> Any:
        return t

    runs = Runs("p", {"t": str(tmp_path / "t")}, str(tmp_path / "into"), tables=tables)
    with pytest.raises(UsageError, match="has not been made yet"):
        runs.backfill("sold", "at > 3")
    assert [run["error"] for run in runs_in(str(tmp_path / "into"))] == [
        "UsageError: table sold has not been made yet: run esault analyze without --backfill"
    ]


def events_in(into: Path) -> list[tuple[str, str, list[str]]]:
    """The events of OpenLineage: kind, job, folders that were written."""
    events = [json.loads(line) for line in (into / "lineage.jsonl").read_text().splitlines()]
    return [(e["eventType"], e["job"]["name"], [Path(one["name"]).name for one in e["outputs"]]) for e in events]


def test_reports_and_backfills_are_in_the_lineage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = Tables(["t"])

    @tables.table
    def sold(t: Any) -> Any:
        return t

    into = tmp_path / "into"
    runs = Runs("p", {"t": str(tmp_path / "t")}, str(into), tables=tables)
    monkeypatch.setattr(TableStep, "backfill", lambda *_: updated())
    runs.backfill("sold", "at > 3")
    monkeypatch.setattr(Results, "folders", lambda self: {"most sold": f"{self.folder}/most-sold"})
    runs.pipeline._watcher.ended("reports", True, 1.0, None)
    runs.pipeline._watcher.ended("reports", None, 1.0, None)  # there was nothing to do
    assert events_in(into) == [
        ("START", "p.table:sold", ["sold"]),
        ("COMPLETE", "p.table:sold", ["sold"]),
        ("START", "p.reports", ["most-sold"]),
        ("COMPLETE", "p.reports", ["most-sold"]),
    ]


@pytest.mark.parametrize(
    ("error", "tries"), [(EsaultError("executor lost"), 3), (UsageError("no"), 1), (ExpectationFailed("rows"), 1)]
)
def test_what_may_be_over_the_next_time_is_tried_again(tmp_path: Path, error: Exception, tries: int) -> None:
    runs = Runs("p", {"t": str(tmp_path / "t")}, str(tmp_path / "into"))
    tried, waited = [], []

    def fails(job: str | None, full: bool, done: set[str]) -> Outcome:
        tried.append(job)
        raise error

    runs.pipeline.run = fails  # type: ignore[method-assign]
    with pytest.raises(type(error)):
        runs.run("tables", retries=2, wait=waited.append)
    assert len(tried) == tries
    assert waited == [1.0, 2.0][: tries - 1]
    assert len(runs_in(str(tmp_path / "into"))) == tries
