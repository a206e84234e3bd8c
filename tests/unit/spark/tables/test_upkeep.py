"""Upkeep of tables without Spark: ours, those of a pipeline with both logs, Delta Lake's."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import delta_log
import in_process
import pytest

import esault
from esault.errors import SinkError, UsageError
from esault.sinks.landing import LOG_FOLDER, parts
from esault.sinks.spark_table import SparkTable
from esault.spark.compact import Compacted
from esault.spark.tables.delta_log import publish
from esault.spark.tables.upkeep import Upkeep, tables_below
from esault.topology.context import Context
from esault.topology.sink import RunInfo

pytest.importorskip("pyarrow")
DAY = 86400.0


def landing(path: Path, epochs: int = 3, run: str = "r1") -> SparkTable:
    """A run that has not ended."""
    driver = SparkTable(path, {"word": str, "total": int}, "append")
    driver.check()
    driver.begin(RunInfo(run, "topology", "table"))
    sink = SparkTable(path, {"word": str, "total": int}, "append")
    sink.open(Context("table", run=run))
    for epoch in range(epochs):
        sink.write_columns(["w"], [epoch], 1.0, None)
        sink.commit(epoch, sink.prepare(epoch))
    return driver


def totals(path: Path, version: int | None = None) -> list[int]:
    return [row["total"] for row in esault.read(path, version=version).to_pylist()]


def files(path: Path) -> int:
    return len(list(path.rglob("part-*.parquet")))


class TestTablesBelow:
    def test_they_are_found_at_any_depth_each_once(self, tmp_path: Path) -> None:
        for name in ("a", "x/b"):
            landing(tmp_path / name).end(True)
        (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
        wanted = [str(tmp_path / name) for name in ("a", "delta", "x/b")]
        assert tables_below([str(tmp_path), str(tmp_path / "a")]) == wanted

    def test_a_folder_without_one_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SinkError, match="no table is in there"):
            tables_below([str(tmp_path)])
        with pytest.raises(SinkError, match="there is no such folder"):
            tables_below([str(tmp_path / "none")])
        with pytest.raises(SinkError, match="s3://b/t: tables in object stores are not compacted or vacuumed"):
            tables_below(["s3://b/t"])


class TestOurs:
    def test_older_versions_can_be_read_for_as_long_as_was_asked(self, tmp_path: Path) -> None:
        landing(tmp_path).end(True)
        assert Upkeep().compact(str(tmp_path)) == Compacted(3, 1, 0)
        assert Upkeep().vacuum(str(tmp_path), DAY) == 0
        assert totals(tmp_path, 2) == [0, 1]
        assert Upkeep().vacuum(str(tmp_path), 0.0) == 3
        assert totals(tmp_path) == [0, 1, 2]
        assert files(tmp_path) == 1

    def test_what_a_run_that_has_not_ended_has_staged_is_kept_unless_forced(self, tmp_path: Path) -> None:
        driver = landing(tmp_path)
        sink = SparkTable(tmp_path, {"word": str, "total": int}, "append")
        sink.open(Context("table", sub_unit=1, run="r1"))
        sink.write_columns(["w"], [9], 1.0, None)
        staged = sink.prepare(1)
        driver._lock.release()  # its process is dead
        with pytest.raises(UsageError, match="its run r1 has not ended"):
            Upkeep().vacuum(str(tmp_path), DAY)
        assert Upkeep().vacuum(str(tmp_path)) == 0  # a week
        sink.commit(1, staged)
        assert totals(tmp_path) == [0, 1, 2, 9]
        assert Upkeep().vacuum(str(tmp_path), 0.0, force=True) == 0

    def test_nothing_young_goes_while_a_run_is_at_it_even_if_forced(self, tmp_path: Path) -> None:
        driver = landing(tmp_path)
        with pytest.raises(SinkError, match="is being written by run r1"):
            Upkeep().vacuum(str(tmp_path), 0.0, force=True)
        driver.end(True)

    def test_the_log_of_delta_lake_beside_ours_is_told(self, tmp_path: Path) -> None:
        deltalake = pytest.importorskip("deltalake")
        landing(tmp_path).end(True)
        publish(str(tmp_path))
        Upkeep().compact(str(tmp_path))
        Upkeep().vacuum(str(tmp_path), 0.0)
        assert [os.path.basename(part) for part in parts(tmp_path)] == [
            os.path.basename(uri) for uri in deltalake.DeltaTable(tmp_path).file_uris()
        ]

    def test_delta_lake_is_told_that_a_compaction_changes_no_row(self, tmp_path: Path) -> None:
        landing(tmp_path).end(True)
        publish(str(tmp_path))
        landing(tmp_path, run="r2").end(True)  # is not said yet when the compaction comes
        Upkeep().compact(str(tmp_path))
        landing(tmp_path, run="r3").end(True)
        publish(str(tmp_path))
        assert [operation(actions) for actions in delta_log.entries(tmp_path)] == [
            ("WRITE", {True}, 3, 0),
            ("WRITE", {True}, 3, 0),
            ("OPTIMIZE", {False}, 1, 6),
            ("WRITE", {True}, 3, 0),
        ]
        assert publish(str(tmp_path)) is None

    def test_an_entry_of_another_writer_that_counts_no_rows_is_read(self, tmp_path: Path) -> None:
        landing(tmp_path).end(True)
        publish(str(tmp_path))
        newest = sorted((tmp_path / "_delta_log").glob("*.json"))[-1]
        bare = [json.loads(line) for line in newest.read_text().splitlines()]
        for action in bare:
            if "add" in action:
                del action["add"]["stats"]
        newest.write_text("".join(f"{json.dumps(action)}\n" for action in bare))
        landing(tmp_path, 1, "r2").end(True)
        assert publish(str(tmp_path)) is not None

    @pytest.mark.parametrize("whose", ["ours", "another's", "of another life"])
    def test_behind_an_entry_of_ours_no_other_is_read(self, tmp_path: Path, whose: str) -> None:
        for run in ("r1", "r2"):
            landing(tmp_path, run=run).end(True)
            publish(str(tmp_path))
        first, newest = sorted((tmp_path / "_delta_log").glob("*.json"))
        first.write_text("what is not read may be anything")
        actions = [json.loads(line) for line in newest.read_text().splitlines()]
        if whose == "another's":
            del actions[0]["commitInfo"]["esault"]
        elif whose == "of another life":
            next(action["add"] for action in actions if "add" in action)["path"] = "part-of-another.parquet"
        newest.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
        landing(tmp_path, 1, "r3").end(True)
        if whose == "ours":
            assert publish(str(tmp_path)) == 2
            first.write_text("")
            assert operation(list(delta_log.entries(tmp_path))[2]) == ("WRITE", {True}, 1, 0)
        else:
            with pytest.raises(ValueError, match="Expecting value"):
                publish(str(tmp_path))

    def test_a_compaction_that_drops_rows_is_a_change(self, tmp_path: Path) -> None:
        landing(tmp_path).end(True)
        sink = SparkTable(tmp_path, {"word": str, "total": int}, "append")
        sink.begin(RunInfo("r2", "topology", "table"))
        sink.open(Context("table", run="r2"))
        for epoch in range(2):  # the same row, since what came again was written again
            sink.write_columns(["w"], [9], 1.0, ["id"])
            sink.commit(epoch, sink.prepare(epoch))
        sink.end(True)
        publish(str(tmp_path))
        assert Upkeep().compact(str(tmp_path), drop_duplicates=True).duplicates == 1
        assert [operation(actions) for actions in delta_log.entries(tmp_path)][1:] == [("WRITE", {True}, 1, 5)]


def operation(actions: list[dict[str, Any]]) -> tuple[str, set[bool], int, int]:
    """What a version of Delta Lake's log says it is, whether rows changed, and how many files it adds and removes."""
    added = [action["add"] for action in actions if "add" in action]
    removed = [action["remove"] for action in actions if "remove" in action]
    said = next(action["commitInfo"]["operation"] for action in actions if "commitInfo" in action)
    return said, {each["dataChange"] for each in added + removed}, len(added), len(removed)


class TestDelta:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        deltalake = pytest.importorskip("deltalake")
        import pyarrow as pa

        for n in range(3):
            deltalake.write_deltalake(tmp_path, pa.table({"n": [n]}), mode="append")
        return tmp_path

    def test_the_library_does_it(self, table: Path) -> None:
        said: list[str] = []
        upkeep = Upkeep(say=said.append)
        assert upkeep.compact(str(table)) == Compacted(3, 1, 0)
        assert said == [f"compacting 3 files of {table}, by deltalake ..."]
        assert upkeep.vacuum(str(table)) == 0
        assert sorted(esault.read(table, version=1)["n"].to_pylist()) == [0, 1]
        with pytest.raises(UsageError, match="only with --force"):
            upkeep.vacuum(str(table), DAY)
        assert upkeep.vacuum(str(table), 0.0, force=True) == 3
        assert sorted(esault.read(table)["n"].to_pylist()) == [0, 1, 2]

    def test_a_log_that_is_none_is_an_error_that_names_the_table(self, tmp_path: Path) -> None:
        pytest.importorskip("deltalake")
        (tmp_path / "_delta_log").mkdir()
        with pytest.raises(SinkError, match=str(tmp_path)):
            Upkeep().compact(str(tmp_path))


class TestCommands:
    def run(self, *arguments: Any) -> tuple[int, str, str]:
        return in_process.esault(*map(str, arguments))

    def test_each_table_has_a_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        for name in ("a", "b"):
            landing(tmp_path / "out" / name).end(True)
        code, out, _ = self.run("compact", "out")
        assert (code, out) == (0, "out/a: 3 files before, 1 now\nout/b: 3 files before, 1 now\n")
        code, out, _ = self.run("vacuum", "out/a", "--keep", "0")
        assert (code, out) == (0, "out/a: 3 files removed\n")

    def test_spark_is_not_started_where_it_would_have_nothing_to_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(importlib.import_module("esault.spark.session"), "session", None)
        landing(tmp_path / "a").end(True)
        code, out, err = self.run("vacuum", "a", "--master", "spark://host:7077", "--conf", "spark.a=b")
        assert (code, out) == (0, "a: 0 files removed\n")
        assert "Spark is not started" in err

    @pytest.mark.parametrize("command", ["compact", "vacuum"])
    def test_settings_of_spark_need_a_cluster(self, command: str, tmp_path: Path) -> None:
        (tmp_path / "a" / LOG_FOLDER).mkdir(parents=True)
        code, _, err = self.run(command, tmp_path, "--conf", "spark.a=b")
        assert code == 2
        assert "--master" in err
