"""`format("esault")` without a session: what its readers hand to tasks, version by version, and what tasks read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")
pytest.importorskip("pyarrow")
sys.path.insert(0, str(Path(__file__).parent / "tables"))
import pyarrow as pa
import pyarrow.parquet as pq
from derived_tables import SCHEMA, add, part_of

from esault.errors import SinkError, UsageError
from esault.sinks.landing.entry import Part
from esault.sinks.landing.schema import Column
from esault.sinks.spark_table import SparkTable
from esault.spark.compact import compact
from esault.spark.data_source import EsaultSource
from esault.spark.derived import DerivedTable
from esault.topology.context import Context


def source(folder: Path, **options: str) -> EsaultSource:
    return EsaultSource({"path": str(folder), **options})


def read(reader: Any, partitions: Any) -> list[int]:
    """The numbers that tasks read of these partitions."""
    return [n for each in partitions for batch in reader.read(each) for n in batch.column(0).to_pylist()]


class Stream:
    """A query that reads a table on from where it was."""

    def __init__(self, folder: Path, **options: str) -> None:
        made = source(folder, **options)
        self.reader = made.streamReader(made.schema())
        self.at = self.reader.initialOffset()

    def more(self) -> list[int]:
        until = self.reader.latestOffset()
        found = read(self.reader, self.reader.partitions(self.at, until))
        self.at = until
        return found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": ""}, "needs the table's folder"),
        ({"partitions": "0"}, "option partitions must be a whole number from 1 on, got '0'"),
        ({"partitions": "two"}, "got 'two'"),
        ({"partitions": "-1"}, "got '-1'"),
        ({"replaced": "ignore"}, 'option replaced must be "fail" or "follow", got \'ignore\''),
    ],
)
def test_options_that_mean_nothing_are_refused(tmp_path: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        source(tmp_path, **options)


@given(st.lists(st.integers(1, 1000), max_size=40), st.integers(1, 12))
def test_parts_are_divided_in_their_order_into_so_many_pieces_at_most(sizes: list[int], most: int) -> None:
    parts = [Part(f"p{i}", 1, size) for i, size in enumerate(sizes)]
    pieces = source(Path("t"), partitions=str(most))._table.divide(parts, SCHEMA)
    assert [name for piece in pieces for name in piece.names] == [part.path for part in parts]
    assert len(pieces) <= most and all(piece.names for piece in pieces)
    share = sum(sizes) / most
    for piece in pieces:
        size = sum(sizes[int(name[1:])] for name in piece.names)
        assert size <= share + max(sizes), "a piece is of about one size"


def test_a_stream_begins_with_all_rows_and_has_each_later_one_once(tmp_path: Path) -> None:
    table = add(tmp_path, [1, 2])
    add(tmp_path, [3])
    part_of(table, [99])  # no entry shows it
    stream = Stream(tmp_path)
    assert stream.more() == [1, 2, 3]
    assert stream.more() == []
    add(tmp_path, [4])
    compact(tmp_path)  # puts together what was read and what was not
    add(tmp_path, [5])
    assert stream.more() == [4, 5]
    assert stream.more() == []
    assert Stream(tmp_path).more() == [1, 2, 3, 4, 5]


def test_what_lands_behind_the_beginning_of_a_run_that_takes_what_is_there_is_for_the_next(tmp_path: Path) -> None:
    add(tmp_path, [1])
    stream = Stream(tmp_path)
    stream.reader.prepareForTriggerAvailableNow()
    add(tmp_path, [2])
    assert (stream.more(), stream.more()) == ([1], [])


def wider(path: Path, rows: list[float]) -> None:
    """Rows with a column more, and floats in place of whole numbers."""
    table = DerivedTable(str(path))
    schema = (Column("n", "double", True), Column("m", "string", True))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": pa.array(rows, pa.float64()), "m": pa.array(["x"] * len(rows))}), sink)
    with table.locked():
        table.commit([table.put(memoryview(sink.getvalue()), len(rows))], schema, (), table.state(), False)


def test_a_query_keeps_the_columns_that_it_was_planned_with(tmp_path: Path) -> None:
    add(tmp_path, [1])
    stream, batch = Stream(tmp_path), source(tmp_path)
    reader = batch.reader(batch.schema())
    assert stream.more() == [1]
    wider(tmp_path, [2.0])
    assert stream.more() == [2]
    assert read(reader, reader.partitions()) == [1, 2]
    for each in reader.partitions():
        for rows in reader.read(each):
            assert rows.schema == pa.schema([("n", pa.int64())])
    wider(tmp_path, [2.5])
    with pytest.raises(SinkError, match=r"column 'n' cannot become int64: .*2.5"):
        stream.more()
    assert Stream(tmp_path).more() == [1.0, 2.0, 2.5]  # one that begins now


def test_columns_may_be_chosen_and_others_than_the_table_has_are_named(tmp_path: Path) -> None:
    from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

    wider(tmp_path, [0.5])
    made = source(tmp_path)
    reader = made.reader(StructType([StructField("m", StringType())]))
    assert read(reader, reader.partitions()) == ["x"]
    reader = made.reader(StructType([StructField("nn", LongType())]))
    with pytest.raises(SinkError, match="has no column 'nn'; there are: n, m"):
        reader.partitions()
    with pytest.raises(UsageError, match="column 'n' is asked for as int, which a table has not"):
        made.streamReader(StructType([StructField("n", IntegerType())]))


def test_a_table_that_is_replaced_stops_a_stream_or_is_followed_with_its_new_rows(tmp_path: Path) -> None:
    add(tmp_path, [1])
    strict, follows, slow = Stream(tmp_path), Stream(tmp_path, replaced="follow"), Stream(tmp_path, replaced="follow")
    assert strict.more() == follows.more() == slow.more() == [1]
    add(tmp_path, [2])
    assert follows.more() == [2]
    table = add(tmp_path, [3, 4], whole=True)  # as a job does that makes all anew
    add(tmp_path, [5])
    with pytest.raises(SinkError, match=r"was replaced, or rows of it were, at version 3, .* option replaced=follow"):
        strict.more()
    assert follows.more() == [3, 4, 5]
    for name in os.listdir(tmp_path):
        if name.startswith("part-") and name not in (table.state().files or {}):
            os.unlink(tmp_path / name)
    assert slow.more() == [3, 4, 5], "what it did not read is gone with the table of before"


def test_rows_that_are_changed_are_followed_as_they_are_now(tmp_path: Path) -> None:
    table = add(tmp_path, [1])
    stream = Stream(tmp_path, replaced="follow")
    assert stream.more() == [1]
    add(tmp_path, [2])
    with table.locked():
        second = list(table.state().files or ())[1]
        table.commit([part_of(table, [20])], SCHEMA, (), table.state(), False, [second])
    assert stream.more() == [20]


def test_a_version_that_the_table_has_not_and_a_part_that_is_gone_are_said(tmp_path: Path) -> None:
    table = add(tmp_path, [1])
    made = source(tmp_path)
    reader = made.streamReader(made.schema())
    with pytest.raises(SinkError, match="has no version 7, which the stream's checkpoint names"):
        reader.partitions({"version": 1}, {"version": 7})
    partitions = reader.partitions(reader.initialOffset(), reader.latestOffset())
    os.unlink(tmp_path / next(iter(table.state().files or ())))
    with pytest.raises(SinkError, match=r"part-\w+.parquet is gone: .* Read the table anew; a stream needs a new"):
        read(reader, partitions)


def test_of_no_parts_spark_makes_a_partition_of_its_own_which_has_no_rows(tmp_path: Path) -> None:
    from pyspark.sql.datasource import InputPartition

    add(tmp_path, [1])
    made = source(tmp_path)
    for reader in (made.reader(made.schema()), made.streamReader(made.schema())):
        assert read(reader, [InputPartition(None)]) == []


def test_of_a_primary_key_a_batch_has_the_newest_row_and_a_stream_each_update(tmp_path: Path) -> None:
    sink = SparkTable(tmp_path, {"n": int, "m": str}, primary_key="n")
    sink.open(Context("u", run="r"))
    for epoch, rows in enumerate([([1, 2], ["a", "a"]), ([1, 3], ["b", "b"]), ([2], [None])]):
        sink.write_columns(*rows, 1.0, None)
        sink.commit(epoch, sink.prepare(epoch))
    made = source(tmp_path)
    reader = made.reader(made.schema())
    (partition,) = reader.partitions()
    found = [row for rows in reader.read(partition) for row in rows.to_pylist()]
    assert sorted((row["n"], row["m"]) for row in found) == [(1, "b"), (3, "b")]
    assert Stream(tmp_path).more() == [1, 2, 1, 3, 2]
