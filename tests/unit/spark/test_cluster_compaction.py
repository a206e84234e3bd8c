"""Compaction by executors without them: which parts become one, and what is committed where a group fails."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")
pytest.importorskip("pyarrow")
sys.path.insert(0, str(Path(__file__).parent / "tables"))
from derived_tables import SCHEMA, add, part_of

from esault.errors import SinkError
from esault.sinks.landing import table_log
from esault.sinks.landing.disk import LocalDisk
from esault.sinks.landing.entry import Part
from esault.sinks.landing.log import CommitLog
from esault.sinks.landing.schema import Column
from esault.spark import cluster_compaction
from esault.spark.cluster_compaction import _check, _groups, _rewrite_all
from esault.spark.derived import DerivedTable

BIG = 10**6


def in_folder(path: Path, folder: str, rows: list[int]) -> None:
    """Rows of a part in a folder of the table."""
    table = DerivedTable(str(path))
    with table.locked():
        made = part_of(table, rows)
        (path / folder).mkdir(exist_ok=True)
        (path / made.path).rename(path / folder / made.path)
        placed = Part(f"{folder}/{made.path}", made.rows, made.bytes)
        table.commit([placed], SCHEMA, (), table.state(), False)


def grouped(path: Path, target: int = BIG, only: int | None = None) -> list[list[int]]:
    """The groups, by the places of their parts in the table."""
    log = table_log(path)
    files = log.files()
    return [[files.index(part) for part in group.parts] for group in _groups(log, files[:only], target)]


def test_neighbours_of_one_folder_become_one(tmp_path: Path) -> None:
    for i in range(3):
        in_folder(tmp_path, "k=a", [i])
        in_folder(tmp_path, "k=b", [i])
    in_folder(tmp_path, "k=c", [9])
    assert grouped(tmp_path) == [[0, 2, 4], [1, 3, 5]]
    assert grouped(tmp_path, only=3) == [[0, 2]]
    size = max(part.bytes for part in table_log(tmp_path).files())
    assert grouped(tmp_path, 2 * size + 1) == [[0, 2], [1, 3]]
    assert grouped(tmp_path, size) == [], "none is small beside such a target"


def test_parts_with_other_columns_stay_apart(tmp_path: Path) -> None:
    for i in range(2):
        add(tmp_path, [i])
    table = DerivedTable(str(tmp_path))
    with table.locked():  # the column comes later: parts of before do not have it
        table.commit([part_of(table, [2])], (*SCHEMA, Column("m", "string", True)), (), table.state(), False)
    log = table_log(tmp_path)
    assert grouped(tmp_path) == [[0, 1, 2]]  # as it was written: by the file, not by the log
    (group,) = _groups(log, log.files(), BIG)
    assert group.schema == SCHEMA


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """Executors that write each group's rows as they are; by the first row's number, what one does in place of that."""
    instead: dict[int, Any] = {}

    def staged(spark: Any, table: str, disk: Any, group: Any, drop_duplicates: bool) -> list[Part]:
        import pyarrow.parquet as pq

        rows = [n for part in group.parts for n in pq.read_table(f"{table}/{part.path}")["n"].to_pylist()]
        if rows[0] in instead:
            instead[rows[0]]()
        return [part_of(DerivedTable(table), sorted(set(rows)) if drop_duplicates else rows)]

    monkeypatch.setattr(cluster_compaction, "_staged", staged)
    monkeypatch.setattr(cluster_compaction, "cores", lambda spark: 1)
    return instead


def compacted(path: Path, size: int, drop_duplicates: bool = False) -> int:
    log = CommitLog(str(path))
    log.refresh()
    groups = list(_groups(log, log.files(), 2 * size + 1))
    return _rewrite_all(SimpleNamespace(), log, LocalDisk(), groups, drop_duplicates)  # type: ignore[arg-type]


def rows_in(path: Path) -> list[list[int]]:
    import pyarrow.parquet as pq

    return sorted(pq.read_table(path / part.path)["n"].to_pylist() for part in table_log(path).files())


def six(path: Path) -> int:
    for i in range(6):
        add(path, [i, 7])
    return table_log(path).files()[0].bytes


def test_each_group_is_committed_by_itself_and_repetitions_are_counted(tmp_path: Path, cluster: dict[int, Any]) -> None:
    assert compacted(tmp_path, six(tmp_path), drop_duplicates=True) == 3
    assert rows_in(tmp_path) == [[0, 1, 7], [2, 3, 7], [4, 5, 7]]
    entries = list(table_log(tmp_path).entries(6, table_log(tmp_path).state.version))
    assert [entry.kind for _, entry in entries] == ["compact"] * 3


def test_after_an_error_what_was_done_stays_and_no_further_group_is_begun(
    tmp_path: Path, cluster: dict[int, Any]
) -> None:
    begun: list[int] = []

    def fail() -> None:
        raise SinkError("the disk is full")

    cluster.update({2: fail, 4: lambda: begun.append(4)})
    with pytest.raises(SinkError, match="the disk is full"):
        compacted(tmp_path, six(tmp_path))
    assert [0, 7, 1, 7] in rows_in(tmp_path)
    assert sorted(n for part in rows_in(tmp_path) for n in part if n != 7) == list(range(6))
    assert not begun


def test_a_group_whose_parts_another_has_replaced_meanwhile_is_left_and_leaves_nothing(
    tmp_path: Path, cluster: dict[int, Any]
) -> None:
    cluster[2] = lambda: add(tmp_path, [100], whole=True)
    assert compacted(tmp_path, six(tmp_path)) == 0
    assert rows_in(tmp_path) == [[100]]
    # the first group was one before that; of the others there is no part
    made = [path for path in tmp_path.glob("part-*") if path.name not in {p.path for p in table_log(tmp_path).files()}]
    assert len(made) == 6 + 1


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"read": 1, "kept": 2}, "have 1 rows, and the log says 2; it is not compacted"),
        (
            {"read": 2, "kept": 3},
            "executors wrote 3 rows of .*, and 2 are here: they must see the folder under the same",
        ),
    ],
)
def test_new_parts_go_where_other_rows_were_read_or_written(tmp_path: Path, found: dict[str, int], said: str) -> None:
    made = part_of(add(tmp_path, [0]), [1, 2])
    _check(str(tmp_path), LocalDisk(), [made], {"read": 2, "kept": 2}, 2)
    assert (tmp_path / made.path).exists()
    with pytest.raises(SinkError, match=said):
        _check(str(tmp_path), LocalDisk(), [made], found, 2)
    assert not (tmp_path / made.path).exists()
