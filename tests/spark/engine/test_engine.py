"""Topologies on a real Spark: final tables are those of the other engines, over deaths and restarts too."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import depth
import pytest

from esault.errors import TopologyFailed, UsageError
from esault.flow.send.end_sinks import end_sinks
from esault.messages.settings import Settings
from esault.runtime.session.request import Request
from esault.runtime.session.run import execute
from esault.sinks import JsonLines
from esault.spark import read_table
from esault.spark.engine import query
from esault.spark.engine.journal import Journal
from esault.testing import LocalRuntime
from esault.topology.locate import locate

FLOWS = str(Path(__file__).parents[2] / "unit" / "spark" / "engine" / "flows.py")
EXACTLY = Settings(delivery="eo")

pytestmark = pytest.mark.timeout(400)  # for a machine that has much else to do


def run(name: str, out: Path, **options: Any) -> Any:
    return execute(Request(locate(f"{FLOWS}:{name}"), {"out": str(out)}, "spark", **options))


def expected(name: str, out: Path) -> LocalRuntime:
    local = LocalRuntime(locate(f"{FLOWS}:{name}").build({"out": str(out)}))
    local.run_until_drained()
    return local


def bag(rows: Any) -> Counter[Any]:
    return Counter((row[0], row[1]) for row in rows)


def total(rows: Any) -> dict[Any, int]:
    sums: Counter[Any] = Counter()
    for row in rows:
        sums[row[0]] += row[1]
    return dict(sums)


def test_final_tables_are_those_of_the_other_engines(spark: Any, tmp_path: Path) -> None:
    local = expected("everything", tmp_path)
    report = run("everything", tmp_path)
    assert (report.engine, report.ended) == ("spark", "drained")
    for name in ("seen_by_one", "seen_by_all", "seen_by_some", "no_dogs", "sums"):
        assert bag(report.collected[name]) == bag(local.landed(name)), name
    for name in ("halves", "lengths"):
        assert total(report.collected[name]) == total(local.landed(name)), name
    assert len(report.collected["both"]) == len(local.landed("both"))
    cats = [json.loads(line) for line in (tmp_path / "cats.jsonl").read_text().splitlines()]
    assert bag((row["key"], row["value"]) for row in cats) == bag(local.landed("cats"))
    units = report.units
    assert (units["lines"].tuples_out, units["split"].tuples_in, units["picky"].errors) == (100, 100, 50)
    assert units["count"].tuples_in == len(local.emitted("split")) and units["count"].latency_ms.max > 0
    assert report.end_to_end_ms.max > 0
    assert report.as_dict()["roots"] is None


def test_files_of_a_state_in_a_folder_are_renamed_without_other_programs(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(query.on_disk(spark)) == 1
    monkeypatch.setattr(query, "_BY_FILE_SYSTEM", "org.apache.spark.OfAnotherVersion")
    assert query.on_disk(spark) == {}


def test_deaths_before_and_within_a_commit_neither_lose_nor_repeat(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, write = JsonLines.commit, Journal.write
    died: set[str] = set()

    def dies(when: str) -> None:
        if when not in died:
            died.add(when)
            raise OSError(f"gone {when}")

    def dying_write(self: Any, epoch: int, record: Any) -> None:
        if epoch == 1:
            dies("before the record")
        write(self, epoch, record)

    def dying_commit(self: Any, epoch: int, handle: Any) -> None:
        if epoch == 2:
            dies("before the commit")
        commit(self, epoch, handle)
        if epoch == 3:
            dies("behind the commit")

    monkeypatch.setattr("esault.spark.engine.batch_size.FIRST", 200)  # a batch is soon over
    monkeypatch.setattr(Journal, "write", dying_write)
    monkeypatch.setattr(JsonLines, "commit", dying_commit)
    out, state = tmp_path / "out", tmp_path / "state"
    with pytest.raises(TopologyFailed, match="gone before the record"):
        run("endless", out, settings=EXACTLY, state=state)
    with pytest.raises(TopologyFailed, match="gone before the commit"):
        run("endless", out, settings=EXACTLY, state=state, resume=True)
    with pytest.raises(UsageError, match="holds a run that did not finish: go on with --resume"):
        run("endless", out, settings=EXACTLY, state=state)
    # with other tasks, whose state is where the keys are, and then with the ones that were asked for last
    with pytest.raises(TopologyFailed, match="gone behind the commit"):
        run("endless", out, settings=EXACTLY, state=state, resume=True, parallelism={"count": 3})
    report = run("endless", out, settings=EXACTLY, state=state, resume=True, seconds=0.2)
    assert report.ended == "paused" and report.checkpoints.resumed_from == 4
    assert report.units["count"].parallelism == [(0.0, 3)]
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    seen: dict[int, list[int]] = {}
    for row in rows:
        seen.setdefault(row["key"], []).append(row["value"])
    assert len(seen) == 7
    for values in seen.values():  # each total once, none left out
        assert sorted(values) == list(range(1, len(values) + 1))
    assert len(rows) > report.units["count"].tuples_in  # some are of the life before


def test_a_death_within_the_first_batch_loses_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Journal.write
    died: list[int] = []

    def dying_write(self: Any, epoch: int, record: Any) -> None:
        if not died:
            died.append(epoch)
            raise OSError("gone before the record")
        write(self, epoch, record)

    monkeypatch.setattr(Journal, "write", dying_write)
    local = expected("two_sources", tmp_path / "local")
    out, state = tmp_path / "out", tmp_path / "state"
    with pytest.raises(TopologyFailed, match="gone before the record"):
        run("two_sources", out, settings=EXACTLY, state=state)
    report = run("two_sources", out, settings=EXACTLY, state=state, resume=True)
    assert (died, report.ended) == ([0], "drained")
    assert bag(report.collected["sums"]) == bag(local.landed("sums"))
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert bag((row["key"], row["value"]) for row in rows) == bag(local.landed("rows"))


def died_and_went_on(out: Path, monkeypatch: pytest.MonkeyPatch, deaths: list[Any]) -> None:
    """Run the topology `numbered` through `deaths`, and compare what it has put out with a plain loop.

    A death: the epoch, "before" or "behind" its record, and the tasks of the life that ends so; that behind them drains.
    """
    write = Journal.write
    dying: list[tuple[int, str]] = []

    def dying_write(self: Any, epoch: int, record: Any) -> None:
        at, when = dying[-1] if dying else (None, "")
        if epoch == at and when == "before":
            raise OSError(f"gone {when} {epoch}")
        write(self, epoch, record)
        if epoch == at:
            raise OSError(f"gone {when} {epoch}")

    monkeypatch.setattr("esault.spark.engine.batch_size.FIRST", 700)  # three batches
    monkeypatch.setattr(Journal, "write", dying_write)
    options = {"settings": EXACTLY, "state": out / "state"}
    for life, (epoch, when, tasks) in enumerate(deaths):
        dying.append((epoch, when))
        with pytest.raises(TopologyFailed, match=f"gone {when} {epoch}"):
            run("numbered", out, **options, resume=life > 0, parallelism=tasks)
    dying.clear()
    report = run("numbered", out, **options, resume=True)
    assert report.ended == "drained"
    sums: Counter[int] = Counter()
    rows = []
    for i in range(2000):
        sums[i % 7] += 1 + i
        rows.append((i % 7, sums[i % 7]))
    landed = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert bag((row["key"], row["value"]) for row in landed) == bag(rows)
    assert dict(report.collected["totals"]) == sums


def test_a_death_within_the_first_batch_with_other_tasks_loses_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    died_and_went_on(tmp_path, monkeypatch, [(1, "before", {"sum": 2}), (1, "before", {"sum": 3})])


@depth.deep("seven lives; the test before this one has those that failed")
def test_deaths_within_first_batches_with_other_tasks_and_again_others_lose_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths = [(0, "before", {"sum": 2}), (0, "before", {"sum": 3}), (0, "behind", {}), (1, "before", {"sum": 2})]
    died_and_went_on(
        tmp_path, monkeypatch, [*deaths, (1, "before", {}), (1, "before", {"sum": 1}), (1, "behind", {"sum": 3})]
    )


@pytest.mark.parametrize("told", [False, True])
def test_a_death_behind_the_last_commit_leaves_nothing_to_do(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    def gone(begun: Any, ok: bool, *more: Any) -> None:
        end_sinks(begun, told, *more)  # lets go of locks, as a death does; `told`: it came behind the sinks' end
        raise OSError("gone behind the last commit")

    options = {"settings": EXACTLY, "state": tmp_path / "state"}
    with monkeypatch.context() as dying:
        dying.setattr("esault.spark.engine.run.end_sinks", gone)
        with pytest.raises(OSError, match="gone behind the last commit"):
            run("numbered", tmp_path, **options)
    rows = (tmp_path / "rows.jsonl").read_text()
    assert len(rows.splitlines()) == 2000
    assert run("numbered", tmp_path, **options, resume=True).ended == "drained"
    assert (tmp_path / "rows.jsonl").read_text() == rows
    assert (tmp_path / "state" / "spark" / "ended").exists()


def test_ctrl_c_drains(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("esault.spark.engine.batch_size.FIRST", 200)

    def interrupt() -> None:
        while not (tmp_path / "rows.jsonl").exists():  # how long Spark takes to begin is the machine's affair
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt, daemon=True)
    waiting.start()
    report = run("endless", tmp_path)
    waiting.join()
    assert report.ended == "drained"
    rows = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert len(rows) == report.units["numbers"].tuples_out == sum(v for _, v in report.collected["totals"])


def test_an_error_of_user_code_is_told_with_unit_key_and_traceback(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(TopologyFailed) as failed:
        run("angry", tmp_path)
    text = str(failed.value)
    assert text.startswith("unit 'angry', process, key 'mat': ValueError: not the mat\n")
    assert 'raise ValueError("not the mat")' in text and "py4j" not in text and "esault/flow" not in text
    assert failed.value.report.ended == "failed"  # type: ignore[attr-defined]


@depth.deep("without a JVM in tests/unit/spark/engine/test_chain.py, and sliding ones in test_topologies.py")
def test_windows_are_those_of_the_other_engines(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("esault.spark.engine.batch_size.FIRST", 400)  # several batches
    local = expected("timed", tmp_path)
    report = run("timed", tmp_path)
    for name in ("minutes", "slides", "sessions", "joined", "largest", "plain", "odd"):
        got, want = report.collected[name], local.landed(name)
        assert Counter(json.dumps(row[:2], sort_keys=True) for row in got) == Counter(
            json.dumps(row[:2], sort_keys=True) for row in want
        ), name
    assert report.units["minutes"].late == 0


def test_files_with_event_time_have_a_watermark_each(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("esault.spark.engine.batch_size.FIRST", 100)  # several batches
    for number in range(7):
        rows = [f"k{i % 3},{1000 * number + i}\n" for i in range(900)]
        (tmp_path / f"{number}.csv").write_text("k,n\n" + "".join(rows))
    located, params = locate(f"{FLOWS}:timed_files"), {"kind": "csv", "folder": str(tmp_path)}
    local = LocalRuntime(located.build(params))
    local.run_until_drained()
    report = execute(Request(located, params, "spark"))
    assert bag(report.collected["tens"]) == bag(local.landed("tens"))
    assert report.units["tens"].late == 0 == len(report.collected["late"])
    assert report.units["rows"].tuples_out == 6300


@depth.deep("without a JVM in tests/unit/spark/engine/test_chain.py")
def test_calls_that_wait_give_what_they_give_on_the_other_engines(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("esault.spark.engine.batch_size.FIRST", 150)  # several batches
    local = expected("waiting", tmp_path)
    report = run("waiting", tmp_path)
    for name in ("rows", "totals", "sums"):
        assert bag(report.collected[name]) == bag(local.landed(name)), name
    assert report.units["ask"].errors == 30


def test_a_source_that_cannot_seek_is_spooled(spark: Any, tmp_path: Path) -> None:
    report = run("poured", tmp_path)
    assert sorted(report.collected["totals"]) == [(i, 20) for i in range(5)]


def test_tables_are_read_by_spark_as_they_are(spark: Any, tmp_path: Path) -> None:
    run("words", tmp_path)
    rows = read_table(spark, tmp_path / "table").groupBy("word").agg({"total": "max"}).collect()
    local = expected("words", tmp_path / "none")
    assert dict(rows) == total(local.landed("totals"))


def test_a_sink_commits_a_batch_as_one_and_async_hooks_are_waited_for(spark: Any, tmp_path: Path) -> None:
    out = tmp_path / "rows.sqlite"
    Path(f"{out}.gate").write_text("300")
    place = Path(__file__).parents[2] / "acceptance" / "one_commit.py"
    params = {"out": str(out), "kind": "Service", "n": "300"}
    assert execute(Request(locate(f"{place}:topology"), params, "spark")).ended == "drained"
    with sqlite3.connect(out) as database:
        assert sorted(v for (v,) in database.execute("select value from shown")) == list(range(300))
        assert database.execute("select count(*) from staged").fetchone() == (0,)
