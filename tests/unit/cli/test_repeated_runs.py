"""When `esault analyze` runs again, and what it says meanwhile; no Spark starts, and time is passed in."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from esault.errors import EsaultError
from esault.sinks.spark_table import SparkTable
from esault.spark.pipeline import Pipeline
from esault.spark.tables.expectations import ExpectationFailed
from esault.spark.tables.history import runs_in
from esault.topology.context import Context
from esault.topology.sink import RunInfo
from tests.shared.in_process import esault

TOPOLOGY = """
from esault import Topology
from esault.sinks import SparkTable
from esault.sources import Items

def topology():
    t = Topology("small")
    t.spout("rows", Items([])).sink("table", SparkTable("out/table", {"a": str}, "append"))
    return t
"""
BEGAN = 1_767_225_590.0  # ten seconds before a new hour


def land(rows: int) -> None:
    """Land so many rows more."""
    run = str(uuid.uuid4())
    driver, sink = (SparkTable("out/table", {"a": str}, "append") for _ in range(2))
    driver.check()
    driver.begin(RunInfo(run, "small", "table"))
    sink.open(Context("u", run=run))
    if rows:
        sink.write_columns(["x"] * rows, [()] * rows, 1.0, [f"i{n}" for n in range(rows)])
        sink.commit(0, sink.prepare(0))
    driver.end(True)


@pytest.fixture
def analyze(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Runs the command for so many seconds; `at`: what is done at which second of them. Returns what it said."""
    monkeypatch.chdir(tmp_path)
    Path("small.py").write_text(TOPOLOGY)

    def run(*options: str, seconds: float, at: dict[int, Callable[[], object]] | None = None) -> list[str]:
        passed, todo = 0.0, dict(at or {})

        def sleep(more: float) -> None:
            nonlocal passed
            passed += more
            for second in [second for second in todo if second <= passed]:
                todo.pop(second)()
            if passed >= seconds:
                raise KeyboardInterrupt

        clock = SimpleNamespace(sleep=sleep, time=lambda: BEGAN + passed)
        monkeypatch.setattr("esault.cli.analyze.time", clock)
        code, _, said = esault("analyze", "small.py", *options)
        assert code == 0, said
        assert not todo
        return said.splitlines()

    return run


class Begun:
    """The runs that have begun, by what they ended with; `ends` says that of the next ones, then all end well."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self.ends: list[Exception] = []

    def step(self, *_: object) -> None:
        error = self.ends.pop(0) if self.ends else None
        self.all.append(str(error or "well"))
        if error is not None:
            raise error


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Begun:
    """No job does anything but end as it is told."""
    begun = Begun()
    monkeypatch.setattr(Pipeline, "_clean", begun.step)
    monkeypatch.setattr(Pipeline, "_report", lambda *_: False)
    return begun


class TestNoRows:
    @pytest.mark.parametrize("options", [("--every", "2"), ("--cron", "* * * * * *")])
    def test_it_waits_says_so_once_and_counts_no_run(
        self, analyze: Callable[..., list[str]], runs: Begun, options: tuple[str, ...]
    ) -> None:
        said = analyze(*options, "--retries", "2", seconds=30, at={10: lambda: land(0), 20: lambda: land(3)})
        assert [line for line in said if "waiting" in line or "failed" in line] == [
            "waiting for rows: no table at out/table: there is no such folder. Run the topology that writes it first",
            "waiting for rows: no rows yet in table (out/table): nothing was committed. Run the topology first, and let it "
            "end or commit",
        ]
        assert set(runs.all) == {"well"}
        assert runs_in("out/analytics/small") == []

    def test_a_single_run_says_what_is_missing_and_is_none(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("small.py").write_text(TOPOLOGY)
        code, _, said = esault("analyze", "small.py", "--retries", "2")
        assert (code, said.count("no table at out/table")) == (2, 1)
        assert runs_in("out/analytics/small") == []


class TestCron:
    def test_it_runs_at_its_times_and_goes_on_behind_a_run_that_fails(
        self, analyze: Callable[..., list[str]], runs: Begun
    ) -> None:
        land(2)
        runs.ends = [EsaultError("executor lost"), ExpectationFailed("a price: 3 rows")]
        said = analyze("--cron", "0 * * * *", seconds=3 * 3600)
        # three hours begin, and what failed for no reason of the rows is tried again before the next one
        assert runs.all == ["executor lost", "a price: 3 rows", "well", "well"]
        assert [line for line in said if "failed" in line] == [
            "this run failed: executor lost",
            "this run failed: a price: 3 rows",
        ]
        assert [run["ok"] for run in runs_in("out/analytics/small")] == [False, False]

    def test_no_crontab_line_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("small.py").write_text(TOPOLOGY)
        code, _, said = esault("analyze", "small.py", "--cron", "at noon")
        assert code == 2
        assert "'at noon' is no crontab line" in said


class TestFollow:
    def test_rows_that_must_not_come_fail_each_landing_and_end_nothing(
        self, analyze: Callable[..., list[str]], runs: Begun
    ) -> None:
        land(2)
        runs.ends = [ExpectationFailed("a price: 3 rows"), ExpectationFailed("a price: 4 rows")]
        said = analyze("--follow", "--retries", "3", seconds=30, at={10: lambda: land(2), 20: lambda: land(2)})
        assert runs.all == ["a price: 3 rows", "a price: 4 rows", "well"]
        assert said[-1] == "stopped"
        assert [run["error"] for run in runs_in("out/analytics/small")] == [
            "ExpectationFailed: a price: 3 rows",
            "ExpectationFailed: a price: 4 rows",
        ]

    def test_an_error_of_a_function_is_told_whole_and_ends_nothing(
        self, analyze: Callable[..., list[str]], runs: Begun
    ) -> None:
        land(2)
        runs.ends = [ZeroDivisionError("a report divides by what there is none of")]
        said = analyze("--follow", "--retries", "3", seconds=30, at={10: lambda: land(2)})
        # it is tried again, and the next landing has a run of its own
        assert runs.all == ["a report divides by what there is none of", "well", "well"]
        assert "Traceback (most recent call last):" in said
        assert "this run failed: ZeroDivisionError: a report divides by what there is none of" in said

    def test_a_file_that_is_edited_meanwhile_is_said_once_at_the_next_run(
        self, analyze: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, runs: Begun
    ) -> None:
        land(2)

        def edit(text: str) -> None:
            Path("small.py").write_text(text)

        at: dict[int, Callable[[], object]] = {5: lambda: edit(TOPOLOGY + "\n"), 30: lambda: edit(TOPOLOGY)}
        at |= {40: lambda: Path("small.py").unlink()}
        said = analyze("--every", "2", seconds=50, at=at)
        changed = "small.py changed since this command read it: start it again to run the new code"
        assert [line for line in said if "small.py" in line] == [changed, changed]
        assert len(runs.all) > 20  # it went on

    def test_nothing_is_said_of_a_file_that_stays(self, analyze: Callable[..., list[str]], runs: Begun) -> None:
        land(2)
        assert not [line for line in analyze("--every", "2", seconds=10) if "changed" in line]
