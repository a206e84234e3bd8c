"""What Spark reads is what was committed: no more, no less, once."""

from __future__ import annotations

import json
import os
import shutil
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from esault.errors import SinkError
from esault.sinks.landing import parts, table_log
from esault.sinks.parquet import Parquet
from esault.sinks.spark_table import SparkTable
from esault.spark import read_table
from esault.spark.compact import compact
from esault.topology.context import Context


def totals(frame: Any) -> list[int]:
    return sorted(row.total for row in frame.collect())


def test_an_orphan_and_an_uncommitted_part_are_invisible(spark: Any, landed: Any) -> None:
    table = landed()
    for epoch in range(3):
        table.land(range(10 * epoch, 10 * epoch + 10), sub_unit=epoch % 2)
    _, _, uncommitted = table.prepare(range(100, 110))
    shutil.copy(parts(table.path)[0], table.path / f"part-{'0' * 32}.parquet")
    assert len([name for name in os.listdir(table.path) if name.endswith(".parquet")]) == 5
    assert totals(read_table(spark, table.path, duplicates=True)) == list(range(30))
    assert totals(spark.read.format("esault").load(str(table.path))) == list(range(30))
    other = SparkTable(table.path, {"word": str, "total": int}, "append")
    other.commit(table.epoch, uncommitted)
    assert totals(read_table(spark, table.path)) == [*range(30), *range(100, 110)]
    assert totals(read_table(spark, table.path, version=2)) == list(range(20))


def test_every_type_arrives_as_it_left(spark: Any, tmp_path: Path) -> None:
    columns = {
        "a key": str | None,
        "i": int,
        "f": float,
        "b": bool,
        "y": bytes,
        "t": datetime,
        "d": date,
        "n": Decimal,
        "o": datetime | None,
    }
    old = datetime(1500, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
    value = (-(2**63), 0.1, True, b"\x00\xff", old, date(1500, 1, 2), Decimal("-0.000000000000000001"), None)
    for kind in (SparkTable, Parquet):
        sink = kind(tmp_path / kind.__name__, columns)
        sink.open(Context("u", run="r"))
        sink.write_columns([None, "kü"], [value, value], 1.5, None)
        sink.commit(0, sink.prepare(0))
        for frame in (
            read_table(spark, tmp_path / kind.__name__),
            spark.read.format("esault").load(str(tmp_path / kind.__name__)),
        ):
            rows = [tuple(row.values()) for row in frame.select(*map("`{}`".format, columns)).toArrow().to_pylist()]
            assert sorted(rows, key=str) == sorted([(None, *value), ("kü", *value)], key=str)
    added = read_table(spark, tmp_path / "SparkTable").select("_id", "_time", "_run").toArrow().to_pylist()
    assert added == [{"_id": None, "_time": datetime.fromtimestamp(1.5, timezone.utc), "_run": "r"}] * 2


def test_rows_that_a_replay_repeats_are_dropped_unless_asked_for(spark: Any, landed: Any) -> None:
    table = landed()
    table.land([1, 2, 3], ["a", "b", "c"])
    table.land([1, 2], ["a", "b"], sub_unit=1)
    table.land([7, 7])  # without ids: rows of their own
    assert totals(read_table(spark, table.path)) == [1, 2, 3, 7, 7]
    assert totals(read_table(spark, table.path, duplicates=True)) == [1, 1, 2, 2, 3, 7, 7]
    table.end()
    again = landed(run="r2")
    again.land([1], ["a"])  # another run: another row
    assert totals(read_table(spark, table.path)) == [1, 1, 2, 3, 7, 7]


def test_ids_are_not_compared_where_the_log_says_that_no_row_was_repeated(spark: Any, landed: Any) -> None:
    table = landed()
    table.land([1, 2], ["a", "b"])

    def compared() -> bool:
        plan = read_table(spark, table.path)._jdf.queryExecution().toString()
        return "Deduplicate" in plan

    assert compared()
    table.end(repeated=False)
    assert not compared()
    assert totals(read_table(spark, table.path)) == [1, 2]
    again = landed(run="r2")
    again.land([3, 3], ["c", "c"])
    again.end(repeated=True)
    assert compared()
    assert totals(read_table(spark, table.path)) == [1, 2, 3]


def test_after_compaction_spark_reads_the_same(spark: Any, landed: Any) -> None:
    table = landed()
    for epoch in range(10):
        table.land([epoch, 99], [f"i{epoch}", "same"])
    before = totals(read_table(spark, table.path))
    done = compact(table.path)
    assert (done.before, done.after, done.duplicates) == (10, 1, 9)
    table.land([100], ["new"])
    assert totals(read_table(spark, table.path, duplicates=True)) == [*before, 100]


def test_missing_empty_and_newer_tables(spark: Any, landed: Any, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="no table at .*nowhere: there is no such folder"):
        read_table(spark, tmp_path / "nowhere")
    table = landed()
    frame = read_table(spark, table.path)
    assert (frame.count(), frame.columns) == (0, ["word", "total", "_id", "_time", "_run"])
    assert spark.read.format("esault").load(str(table.path)).count() == 0
    table.land([1])
    newest = table_log(table.path)
    path = Path(newest.entry_path(newest.state.version))
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 9}))
    with pytest.raises(SinkError, match=r"newer eSault \(format 9; this one knows up to 2\): pip install -U esault"):
        read_table(spark, table.path)


def test_wrong_options_are_named(spark: Any, tmp_path: Path) -> None:
    for options, message in [
        ({}, r"needs the table's folder: .load"),
        ({"path": str(tmp_path / "nowhere")}, "no table at"),
        ({"path": "x", "partitions": "many"}, "option partitions must be a whole number from 1 on, got 'many'"),
        ({"path": "x", "replaced": "maybe"}, 'option replaced must be "fail" or "follow", got'),
    ]:
        with pytest.raises(Exception, match=message):
            spark.read.format("esault").options(**options).load()
