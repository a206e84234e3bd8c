"""Compaction by Spark's executors: the rows stay the same, whoever writes meanwhile and whenever it is killed."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import esault
from esault.errors import EsaultError, SinkError
from esault.sinks.landing import parts, table_log, vacuum
from esault.sinks.landing.compaction import alone
from esault.sinks.landing.log import CommitLog
from esault.sinks.spark_table import SparkTable
from esault.spark import cluster_compaction
from esault.spark.cluster_compaction import PREFIX, compact_by_spark
from esault.spark.compact import Compacted, compact
from esault.topology.context import Context
from esault.topology.sink import RunInfo

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.slow


def rows(path: Path, version: int | None = None) -> Counter[Any]:
    return Counter(map(str, esault.read(path, version=version, added=True).to_pylist()))


def landed_rows(path: Path) -> Counter[Any]:
    """With those that a replay has repeated."""
    return Counter(str(row) for part in parts(path) for row in pq.read_table(part).to_pylist())


def files(path: Path) -> set[str]:
    return {str(one.relative_to(path)) for one in path.rglob("part-*.parquet")}


def landed_parts(landed: Any, epochs: int, name: str = "o[1] {a,b}*%20ü") -> Any:
    table = landed(name)
    for epoch in range(epochs):
        table.land([10 * epoch, 10 * epoch + 1], [f"{epoch}-0", f"{epoch}-1"], sub_unit=epoch % 2, time=float(epoch))
    return table


def test_groups_become_one_part_each_and_each_keeps_the_order_of_its_rows(
    spark: Any, landed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = landed_parts(landed, 12)
    monkeypatch.chdir(table.path.parent)
    before, version = rows(table.path), table_log(table.path).state.version
    said: list[str] = []
    size = table_log(table.path).files()[0].bytes
    done = compact_by_spark(spark, table.path.name, target_bytes=4 * size + 100, say=said.append)
    assert done == Compacted(12, 3, 0)
    assert said == [f"compacting 12 parts of {table.path.name} into 3, by Spark ..."]
    assert rows(table.path) == before == rows(table.path, version)
    for part in parts(table.path):
        totals = pq.read_table(part)["total"].to_pylist()
        assert len(totals) == 8
        assert totals == sorted(totals)
    assert compact_by_spark(spark, table.path, target_bytes=size) == Compacted(3, 3, 0)
    vacuum(str(table.path), -1.0)
    assert files(table.path) == {os.path.relpath(part, table.path) for part in parts(table.path)}
    table.land([7])  # the run goes on
    assert sum(rows(table.path).values()) == sum(before.values()) + 1


def test_repetitions_are_left_out_as_by_one_process(spark: Any, landed: Any, tmp_path: Path) -> None:
    table = landed("repeated")
    for totals, ids in (([1, 2, 1], ["a", "b", "a"]), ([7, 7], [None, None]), ([2, 3], ["b", "c"])):
        table.land(totals, ids)
    other = tmp_path / "other"
    shutil.copytree(table.path, other)
    assert compact_by_spark(spark, table.path, drop_duplicates=False) == Compacted(3, 1, 0)
    assert landed_rows(table.path) == landed_rows(other)
    table.land([3], ["c"])
    assert compact_by_spark(spark, table.path) == Compacted(2, 1, 3)
    assert compact(other) == Compacted(3, 1, 2)
    assert landed_rows(table.path) == landed_rows(other)


def test_parts_keep_their_columns_and_a_whole_number_that_no_float_is_stays(spark: Any, landed: Any) -> None:
    table = landed_parts(landed, 3)
    table.land([2**60 + 1])
    table.end(repeated=False)
    driver = SparkTable(table.path, {"word": str, "total": float, "share": float | None}, "append")
    driver.check()
    driver.begin(RunInfo("r2", "topology", "table"))
    sink = SparkTable(table.path, {"word": str, "total": float, "share": float | None}, "append")
    sink.open(Context("table", run="r2"))
    for epoch in range(3):
        sink.write_columns(["x"], [(0.5, 1.0)], 50.0, None)
        sink.commit(epoch, sink.prepare(epoch))
    driver.end(True)
    assert compact_by_spark(spark, table.path) == Compacted(7, 2, 0)
    # two groups are rewritten side by side: the one that is written first is committed first
    by_kind = {str(pq.read_schema(part).field("total").type): part for part in parts(table.path)}
    assert sorted(by_kind) == ["double", "int64"]
    assert 2**60 + 1 in pq.read_table(by_kind["int64"])["total"].to_pylist()


def test_of_a_primary_key_the_newest_row_stays_and_young_deletions(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(at: float) -> SparkTable:
        sink = SparkTable(tmp_path, {"word": str, "total": int}, "append", primary_key="word")
        sink.open(Context("table", run="r", now=lambda: at))
        return sink

    old, new = written(1000.0), written(2000.0)
    commits: list[tuple[SparkTable, list[tuple[str, int | None]]]] = [
        (new, [("a", 5), ("b", None)]),
        (old, [("a", 1), ("b", 2), ("c", 3)]),
        (new, [("d", 1)]),
    ]
    for epoch, (sink, changes) in enumerate(commits):
        sink.write_columns([key for key, _ in changes], [value for _, value in changes], 1.0, None)
        sink.commit(epoch, sink.prepare(epoch))
    monkeypatch.setattr(cluster_compaction, "TARGET_ROWS", 2)  # several ranges of the key
    monkeypatch.setattr("time.time", lambda: 3000.0)
    done = compact_by_spark(spark, tmp_path)
    assert done.duplicates == 2
    made = table_log(tmp_path).files()
    assert len(made) == done.after > 1
    assert all(part.base for part in made)
    assert sum(part.rows for part in made) == 4  # the deletion, too
    read = sorted(tuple(row.values()) for row in esault.read(tmp_path).to_pylist())
    assert read == [("a", 5), ("c", 3), ("d", 1)]
    assert compact_by_spark(spark, tmp_path) == Compacted(done.after, done.after, 0)


def test_a_run_that_lands_and_replaces_meanwhile_loses_nothing(
    spark: Any, landed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = landed_parts(landed, 6)
    append = CommitLog.append
    seen: list[str] = []

    def meanwhile(log: CommitLog, entry: Any, guard: Any = None) -> Any:
        if entry.kind == "compact" and not seen:
            seen.append(entry.kind)
            table.land([99])
            table.end()
            again = landed(run="r2", mode="replace")
            again.land([1, 2])
        return append(log, entry, guard)

    monkeypatch.setattr(CommitLog, "append", meanwhile)
    compact_by_spark(spark, table.path)
    assert seen
    assert [row["total"] for row in esault.read(table.path).to_pylist()] == [1, 2]


class Killed(BaseException):
    """What a SIGKILL is to the process."""


def test_killed_at_any_step_nothing_is_lost_or_doubled_and_what_it_left_goes(
    spark: Any, landed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = landed_parts(landed, 8)
    size = table_log(table.path).files()[0].bytes
    before = rows(table.path)

    def dies(*arguments: Any, **options: Any) -> Any:
        staged = table.path / f"{PREFIX}dead"
        staged.mkdir(exist_ok=True)
        (staged / "part-0.parquet").write_bytes(b"half")
        raise Killed

    for step in ("stage", "replace_parts"):
        with monkeypatch.context() as patched:
            patched.setattr(cluster_compaction, step, dies)
            with pytest.raises(Killed):
                compact_by_spark(spark, table.path, target_bytes=4 * size + 100)
        assert rows(table.path) == before
        table.land([0])
        before = rows(table.path)
        with alone(str(table.path)) as nobody:
            assert nobody
    compact_by_spark(spark, table.path)
    assert rows(table.path) == before
    assert not list(table.path.glob(f"{PREFIX}*"))
    vacuum(str(table.path), -1.0)
    assert files(table.path) == {os.path.relpath(part, table.path) for part in parts(table.path)}


@pytest.mark.parametrize("what", ["other rows than the log says", "no rows", "no file"])
def test_a_part_that_is_not_as_the_log_says_stays_and_others_do_not_suffer(spark: Any, landed: Any, what: str) -> None:
    table = landed_parts(landed, 4)
    first, second = parts(table.path)[:2]
    if what == "no file":
        os.remove(first)
    elif what == "no rows":
        Path(first).write_bytes(b"PAR1")
    else:
        pq.write_table(pa.concat_tables([pq.read_table(first), pq.read_table(second)]), first)
    theirs = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
    for name in theirs:
        spark.conf.set(name, "true")
    try:
        with pytest.raises((SinkError, EsaultError)):
            compact_by_spark(spark, table.path)
    finally:
        for name in theirs:
            spark.conf.unset(name)
    assert len(table_log(table.path).files()) == 4
    assert files(table.path) <= {os.path.relpath(part, table.path) for part in parts(table.path)}
