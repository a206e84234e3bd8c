"""Compaction: the rows stay the same, whoever else is at work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from esault.errors import SinkError
from esault.sinks.landing import CommitLog, parts, table_log, vacuum
from esault.sinks.parquet import Parquet
from esault.sinks.spark_table import SparkTable
from esault.spark.compact import Compacted, compact, neighbours
from esault.topology.context import Context
from esault.topology.sink import RunInfo

pq = pytest.importorskip("pyarrow.parquet")


def opened(path: Any, sub_unit: int = 0, kind: Any = SparkTable) -> Any:
    sink = kind(path, {"word": str, "total": int}, "append")
    sink.open(Context("u", sub_unit=sub_unit, run="r"))
    return sink


def land(sink: Any, epoch: int, totals: list[int], ids: list[str] | None = None) -> None:
    sink.write_columns(["w"] * len(totals), totals, 1.0, ids)
    sink.commit(epoch, sink.prepare(epoch))


def totals(path: Any) -> list[int]:
    return [total for part in parts(path) for total in pq.read_table(part)["total"].to_pylist()]


def test_small_parts_become_one_and_the_rows_keep_their_order(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for epoch in range(20):
        land(sink, epoch, [2 * epoch, 2 * epoch + 1])
    said: list[str] = []
    assert compact(tmp_path, say=said.append) == Compacted(20, 1, 0)
    assert said == [f"compacting 20 parts of {tmp_path} ..."]
    assert totals(tmp_path) == list(range(40))
    assert compact(tmp_path) == Compacted(1, 1, 0)
    before = table_log(tmp_path).files(5)
    assert len(before) == 5
    assert all(os.path.exists(tmp_path / part.path) for part in before)  # for those who read it right now


def test_rows_with_the_same_run_and_id_become_one_and_rows_without_id_stay(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    land(sink, 0, [1, 2, 3], ["a", "b", "a"])
    land(sink, 1, [4, 4])
    land(sink, 2, [5, 6], ["b", "c"])
    assert compact(tmp_path, drop_duplicates=False).duplicates == 0
    land(sink, 3, [7, 8], ["c", "d"])
    assert compact(tmp_path) == Compacted(2, 1, 3)
    assert totals(tmp_path) == [1, 2, 4, 4, 6, 8]


def test_rows_of_parquet_have_no_ids_and_all_stay(tmp_path: Path) -> None:
    sink = opened(tmp_path, kind=Parquet)
    for epoch in range(3):
        land(sink, epoch, [1, 1])
    assert compact(tmp_path) == Compacted(3, 1, 0)
    assert totals(tmp_path) == [1] * 6


def test_parts_are_joined_up_to_the_target_only(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for epoch in range(12):
        land(sink, epoch, [epoch])
    size = table_log(tmp_path).files()[0].bytes
    done = compact(tmp_path, target_bytes=4 * size + 10)
    assert done.after == 3
    assert totals(tmp_path) == list(range(12))


def test_a_writer_that_commits_meanwhile_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink, other = opened(tmp_path), opened(tmp_path, 1)
    for epoch in range(3):
        land(sink, epoch, [epoch])
    append = CommitLog.append

    def meanwhile(log: CommitLog, entry: Any, guard: Any = None) -> Any:
        if entry.kind == "compact":
            land(other, 0, [99])
        return append(log, entry, guard)

    monkeypatch.setattr(CommitLog, "append", meanwhile)
    compact(tmp_path)
    assert sorted(totals(tmp_path)) == [0, 1, 2, 99]


def test_of_two_compactions_one_wins_and_the_other_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(tmp_path)
    for epoch in range(3):
        land(sink, epoch, [epoch])
    append = CommitLog.append
    inside = []

    def meanwhile(log: CommitLog, entry: Any, guard: Any = None) -> Any:
        if entry.kind == "compact" and not inside:
            inside.append(True)
            compact(tmp_path)
        return append(log, entry, guard)

    monkeypatch.setattr(CommitLog, "append", meanwhile)
    assert compact(tmp_path) == Compacted(3, 1, 0)
    assert totals(tmp_path) == [0, 1, 2]
    assert len([name for name in os.listdir(tmp_path) if name.endswith(".parquet")]) == 3 + 1


def test_a_compaction_during_a_replacement_brings_no_row_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = opened(tmp_path)
    for epoch in range(3):
        land(sink, epoch, [epoch])
    append = CommitLog.append

    def meanwhile(log: CommitLog, entry: Any, guard: Any = None) -> Any:
        if entry.kind == "compact":
            SparkTable(tmp_path, {"word": str, "total": int}, "replace").begin(RunInfo("r2", "t", "u"))
        return append(log, entry, guard)

    monkeypatch.setattr(CommitLog, "append", meanwhile)
    compact(tmp_path)
    assert totals(tmp_path) == []


def test_vacuum_after_compaction_removes_the_old_parts(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for epoch in range(3):
        land(sink, epoch, [epoch])
    for part in parts(tmp_path):
        os.utime(part, (0, 0))  # written long ago, but removed just now
    compact(tmp_path)
    assert vacuum(str(tmp_path)).parts == 0
    assert vacuum(str(tmp_path), older_than=-10).parts == 3
    assert totals(tmp_path) == [0, 1, 2]


def test_a_damaged_part_is_named_and_nothing_changes(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for epoch in range(3):
        land(sink, epoch, [epoch])
    victim = parts(tmp_path)[1]
    Path(victim).write_bytes(b"PAR1 no more")
    with pytest.raises(SinkError, match=f"{victim} cannot be read .*; its table is not compacted"):
        compact(tmp_path)
    assert len(parts(tmp_path)) == 3
    with pytest.raises(SinkError, match="no table at"):
        compact(tmp_path / "nowhere")


@pytest.mark.slow
def test_processes_that_write_while_others_compact_lose_and_repeat_nothing(tmp_path: Path) -> None:
    opened(tmp_path)
    children = []
    for sub_unit in range(3):
        child = os.fork()
        if child == 0:
            try:
                sink = opened(tmp_path, sub_unit)
                for epoch in range(40):
                    land(sink, epoch, [1000 * sub_unit + epoch])
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    for _ in range(10):
        compact(tmp_path)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    compact(tmp_path)
    assert sorted(totals(tmp_path)) == [1000 * sub_unit + epoch for sub_unit in range(3) for epoch in range(40)]
    assert len(parts(tmp_path)) == 1


def test_each_part_is_looked_at_a_few_times_however_many_become_one() -> None:
    looks = 0

    class Looked:
        rows = 1

        @property
        def bytes(self) -> int:
            nonlocal looks
            looks += 1
            return 1

    parts: Any = [Looked() for _ in range(300)]
    assert [len(group) for group in neighbours(parts, 100)] == [100, 100, 100]
    assert looks <= 4 * len(parts)
