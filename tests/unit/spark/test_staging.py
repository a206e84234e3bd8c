"""What Spark wrote gets its durable place: names of folders, order, what is Spark's own; and what killed jobs left is removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
import pyarrow as pa
import pyarrow.parquet as pq

from esault.sinks.landing.disk import LocalDisk
from esault.spark.staging import _move, clear


def write(path: Path, rows: list[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": pa.array(rows, pa.int64())}), path)


def rows_of(path: Path) -> list[int]:
    return pq.read_table(path, partitioning=None).column("n").to_pylist()


def test_parts_get_their_folders_names_and_keep_the_order_of_rows(tmp_path: Path) -> None:
    staging = tmp_path / ".staging-1"
    write(staging / "_folder0=2026-11-29" / "_folder1=north%2Fwest" / "part-00001-x.parquet", [3, 4])
    write(staging / "_folder0=2026-11-29" / "_folder1=north%2Fwest" / "part-00000-x.parquet", [1, 2])
    write(staging / "_folder0=__HIVE_DEFAULT_PARTITION__" / "_folder1=a=b" / "part-00000-x.parquet", [5])
    names = {"_folder0": "date", "_folder1": "shop"}
    parts = list(_move(str(staging), str(tmp_path), LocalDisk(), names, ""))
    by_folder: dict[str, list[int]] = {}
    for part in parts:
        found = rows_of(tmp_path / part.path)
        assert (part.rows, part.bytes) == (len(found), os.path.getsize(tmp_path / part.path))
        by_folder.setdefault(os.path.dirname(part.path), []).extend(found)
    assert by_folder == {
        "date=2026-11-29/shop=north%2Fwest": [1, 2, 3, 4],
        "date=__HIVE_DEFAULT_PARTITION__/shop=a=b": [5],
    }
    assert len({os.path.basename(part.path) for part in parts}) == 3
    assert not list(staging.rglob("*.parquet"))


def test_what_is_sparks_own_and_what_is_empty_is_no_part(tmp_path: Path) -> None:
    staging = tmp_path / ".staging-1"
    write(staging / "part-00000-x.parquet", [])
    write(staging / "part-00001-x.parquet", [1])
    write(staging / "_temporary" / "0" / "part-00002-x.parquet", [2])
    (staging / "_SUCCESS").touch()
    (staging / ".part-00001-x.parquet.crc").touch()
    parts = list(_move(str(staging), str(tmp_path), LocalDisk(), {}, "made"))
    assert [(os.path.dirname(part.path), rows_of(tmp_path / part.path)) for part in parts] == [("made", [1])]


def test_what_killed_jobs_left_is_removed_by_its_prefix_and_age(tmp_path: Path) -> None:
    for name in (".staging-old", ".staging-new", ".other-old", "part=1"):
        (tmp_path / name / "_temporary").mkdir(parents=True)
    for name in (".staging-old", ".other-old"):
        os.utime(tmp_path / name, (1000, 1000))
    clear(str(tmp_path), ".staging-", LocalDisk(), before=2000)
    assert sorted(os.listdir(tmp_path)) == [".other-old", ".staging-new", "part=1"]
    clear(str(tmp_path), ".staging-", LocalDisk())
    assert sorted(os.listdir(tmp_path)) == [".other-old", "part=1"]
