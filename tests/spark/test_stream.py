"""Streams over a landed table: exact, whatever happens to the table, and over restarts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from esault.sinks.landing import parts
from esault.sinks.spark_table import SparkTable
from esault.spark import read_table
from esault.spark.compact import compact
from esault.topology.context import Context
from esault.topology.sink import RunInfo


class Reader:
    """A query that is started, reads what is there and ends, again and again from its checkpoint."""

    def __init__(self, spark: Any, path: Path, checkpoint: Path, **options: str) -> None:
        self.spark, self.path, self.checkpoint, self.options = spark, path, checkpoint, options
        self.batches: list[list[int]] = []

    def run(self) -> list[int]:
        """What is new; a batch is in order of the table."""
        before = len(self.batches)

        def take(frame: Any, number: int) -> None:
            self.batches.append([row.total for row in frame.select("total").collect()])

        stream = self.spark.readStream.format("esault").options(**self.options).load(str(self.path))
        query = (
            stream.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sorted(total for batch in self.batches[before:] for total in batch)


def test_batch_stream_and_what_was_written_are_the_same_over_restarts(spark: Any, landed: Any, tmp_path: Path) -> None:
    table = landed()
    reader = Reader(spark, table.path, tmp_path / "checkpoint")
    for epoch in range(4):
        table.land(range(10 * epoch, 10 * epoch + 10), sub_unit=epoch % 2)
    shutil.copy(parts(table.path)[0], table.path / f"part-{'0' * 32}.parquet")
    assert reader.run() == list(range(40))
    assert reader.run() == []
    table.land(range(40, 50))
    compact(table.path)  # joins what the stream has seen with what it has not
    table.land(range(50, 60), sub_unit=1)
    table.end()
    assert reader.run() == list(range(40, 60))
    assert reader.run() == []
    assert sorted(row.total for row in read_table(spark, table.path).collect()) == list(range(60))
    late = Reader(spark, table.path, tmp_path / "another")
    assert late.run() == list(range(60))


def test_a_running_stream_sees_each_commit(spark: Any, landed: Any, tmp_path: Path) -> None:
    table = landed()
    query = (
        spark.readStream.format("esault")
        .load(str(table.path))
        .writeStream.format("memory")
        .queryName("seen")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        for epoch in range(3):
            table.land([epoch])
            query.processAllAvailable()
            assert [row.total for row in spark.table("seen").orderBy("total").collect()] == list(range(epoch + 1))
        table.end()
        wider = SparkTable(table.path, {"word": str, "total": int, "more": str}, "append")
        wider.begin(RunInfo("r2", "topology", "table"))
        wider.open(Context("table", run="r2"))
        wider.write_columns(["w"], [(9, "x")], 1.0, None)
        wider.commit(0, wider.prepare(0))
        wider.end(True)
        query.processAllAvailable()  # with the columns that it began with
        assert [row.total for row in spark.table("seen").where("word = 'w'").collect()] == [9]
    finally:
        query.stop()


def test_a_batch_that_failed_comes_again_as_it_was(spark: Any, landed: Any, tmp_path: Path) -> None:
    table = landed()
    table.land([1, 2])
    stream = spark.readStream.format("esault").load(str(table.path))

    def fail(frame: Any, number: int) -> None:
        raise ValueError("not now")

    query = stream.writeStream.foreachBatch(fail).option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(Exception, match="not now"):
        query.awaitTermination()
    table.land([3])  # after the batch was cut
    reader = Reader(spark, table.path, tmp_path / "c")
    if spark.version.startswith("4.1."):  # a run makes one batch there, which is the one that failed
        assert (reader.run(), reader.run()) == ([1, 2], [3])
    else:
        assert reader.run() == [1, 2, 3]
    assert [sorted(batch) for batch in reader.batches] == [[1, 2], [3]]


def test_a_table_replaced_under_a_stream_stops_it_unless_it_follows(spark: Any, landed: Any, tmp_path: Path) -> None:
    table = landed()
    table.land([1, 2])
    strict = Reader(spark, table.path, tmp_path / "strict")
    following = Reader(spark, table.path, tmp_path / "following", replaced="follow")
    assert strict.run() == following.run() == [1, 2]
    table.end()
    anew = landed(run="r2", mode="replace")
    anew.land([7])
    with pytest.raises(
        Exception, match=r"was replaced, or rows of it were, at version \d+, and rows that the stream has passed on are"
    ):
        strict.run()
    assert following.run() == [7]
