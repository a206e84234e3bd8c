"""Landed tables for Spark, without a session: columns of parts, folders that are asked for, addresses."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")
pytest.importorskip("pyarrow")
import pyarrow as pa
import pyarrow.parquet as pq

from esault.errors import SinkError, UsageError
from esault.sinks.landing.schema import Column, parse_columns
from esault.spark.table import NULL_FOLDER, _within, part_schema, quoted, spark_schema, table_schema, uri

ALL = parse_columns(
    "t",
    {"s": str, "i": int, "f": float, "b": bool, "y": bytes, "t": datetime, "d": date, "n": Decimal},
)


def test_each_type_of_a_table_has_one_of_spark_and_back() -> None:
    there = spark_schema(ALL)
    kinds = "string bigint double boolean binary timestamp date decimal(38,18)"
    assert [field.dataType.simpleString() for field in there.fields] == kinds.split()
    assert all(field.nullable for field in there.fields), "as Spark's own file sources have them"
    assert [(column.name, column.type) for column in table_schema(there)] == [(c.name, c.type) for c in ALL]


def test_a_part_has_those_columns_of_its_table_that_it_was_written_with(tmp_path: Path) -> None:
    path = str(tmp_path / "part.parquet")
    pq.write_table(pa.table({"n": pa.array([1], pa.int64()), "s": ["x"]}), path)
    table = (Column("s", "string"), Column("n", "double"), Column("d", "date", True))
    assert part_schema(path, table) == (Column("s", "string"), Column("n", "long"))
    with pytest.raises(SinkError, match=r"gone.parquet is gone: the table was compacted or replaced since"):
        part_schema(str(tmp_path / "gone.parquet"), table)


@pytest.mark.parametrize(
    ("column", "folder", "value"),
    [
        ("s", "a", "a"),
        ("s", "a%2Fb", "a/b"),
        ("s", NULL_FOLDER, None),
        ("s", NULL_FOLDER, ""),
        ("i", "-3", -3),
        ("i", "-3", "-3"),
        ("b", "true", True),
        ("b", "false", False),
        ("f", "1.0E10", 1e10),
        ("f", "0.1", 0.1),
        ("n", "1.500000000000000000", Decimal("1.5")),
        ("n", "2.000000000000000000", 2),
        ("d", "2026-01-01", date(2026, 1, 1)),
        ("d", "2026-01-01", "2026-01-01"),
        ("t", "2026-01-01 00:00:01", datetime(2026, 1, 1, 0, 0, 1)),
        ("t", "2026-01-01 00%3A00%3A01.5", datetime(2026, 1, 1, 0, 0, 1, 500_000, timezone.utc)),
        ("t", "2026-01-01 00%3A00%3A01", datetime(2026, 1, 1, 2, 0, 1, tzinfo=timezone(timedelta(hours=2)))),
        ("date", "2026-01-01", date(2026, 1, 1)),
        ("date", "2026-01-01", "2026-01-01"),
    ],
)
def test_folders_are_found_by_values_and_by_texts(column: str, folder: str, value: Any) -> None:
    names = [f"{column}={folder}/part-1", f"{column}=other/part-2", f"{column}=99/part-3"]
    assert _within(names, {column: [value]}, "t", ALL) == names[:1]
    assert _within(names, {column: []}, "t", ALL) == []


def test_of_several_columns_all_must_be_wanted_ones_and_others_are_named() -> None:
    names = ["d=2026-01-01/b=true/p1", "d=2026-01-01/b=false/p2", "d=2026-01-02/b=true/p3"]
    assert _within(names, {"b": [True], "d": ["2026-01-01", "2026-01-03"]}, "t", ALL) == names[:1]
    with pytest.raises(UsageError, match="table t is not partitioned by 's'; it is by: d, b"):
        _within(names, {"s": ["x"]}, "t", ALL)
    with pytest.raises(UsageError, match="partitions names a list of values for each column, such as .*, not 'true'"):
        _within(names, {"b": "true"}, "t", ALL)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/a b/part-1", "file:///a b/part-1"),
        ("/o[1]/{x,y}*?", r"file:///o\[1\]/\{x\,y\}\*\?"),
        ("s3://bucket/t/part-1", "s3a://bucket/t/part-1"),
    ],
)
def test_no_path_is_taken_for_a_pattern(path: str, said: str) -> None:
    assert uri(path) == said


def test_names_of_columns_are_quoted() -> None:
    assert quoted("a `b`.c") == "`a ``b``.c`"
