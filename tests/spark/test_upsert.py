"""A table with a primary key in Spark: one row for each key, by each way to read it; its stream is its changelog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from esault.sinks.spark_table import SparkTable
from esault.spark import read_table
from esault.spark.compact import compact
from esault.spark.jobs import Rules
from esault.spark.pipeline import Pipeline
from esault.topology.context import Context


def test_spark_reads_the_newest_row_of_each_key(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "words"
    columns = {"a word": str, "start": int, "n": int}
    sink = SparkTable(path, columns, primary_key=("a word", "start"))
    sink.open(Context("table", run="r1"))
    for epoch in range(3):
        sink.write_columns(["a", "a", "b"], [(0, epoch), (60, epoch), (0, 10 - epoch)], 1.0, None)
        sink.commit(epoch, sink.prepare(epoch))
    expected = {("a", 0, 2), ("a", 60, 2), ("b", 0, 8)}

    def rows(frame: Any) -> list[tuple[Any, ...]]:
        return [(row["a word"], row["start"], row["n"]) for row in frame.collect()]

    assert sorted(rows(read_table(spark, path))) == sorted(expected)
    assert read_table(spark, path).columns == ["a word", "start", "n", "_updated"]
    assert len(rows(read_table(spark, path, duplicates=True))) == 9
    assert sorted(rows(spark.read.format("esault").load(str(path)))) == sorted(expected)
    changes = spark.readStream.format("esault").load(str(path))
    query = changes.writeStream.format("memory").queryName("changes").trigger(availableNow=True)
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.awaitTermination()
    assert len(rows(spark.table("changes"))) == 9
    assert compact(path).duplicates == 6
    assert sorted(rows(read_table(spark, path, duplicates=True))) == sorted(expected)


def test_the_pipeline_has_the_newest_rows_each_time(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "words"
    sink = SparkTable(path, {"word": str, "n": int}, primary_key="word")
    sink.open(Context("table", run="r1"))

    def report(tables: dict[str, Any]) -> dict[str, Any]:
        return {"rows": tables["table"].select("word", "n").orderBy("word")}

    pipeline = Pipeline({"table": str(path)}, str(tmp_path / "into"), Rules(reports=report), say=lambda text: None)
    sink.write_columns(["a", "b", "c"], [1, 1, 1], 1.0, None)
    sink.commit(0, sink.prepare(0))
    assert pipeline.run().reports["rows"].rows == (("a", 1), ("b", 1), ("c", 1))
    sink.write_columns(["a", "b", "d"], [2, None, 2], 1.0, None)
    sink.commit(1, sink.prepare(1))
    assert pipeline.run().reports["rows"].rows == (("a", 2), ("c", 1), ("d", 2))
    assert pipeline.run().cleaned == {"clean:table": None}
