"""The columns of a table over its life: what may change, what is refused, and that no part is rewritten for it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.sinks.landing import parts, table_log
from esault.sinks.landing.arrow import arrow_schema, conform
from esault.sinks.landing.entry import Entry, Input, Part, decode, encode
from esault.sinks.landing.evolve import Unfit, merge, wider
from esault.sinks.landing.schema import ADDED, Column, Schema
from esault.sinks.landing.state import TableState, decode_snapshot, encode_snapshot
from esault.sinks.spark_table import SparkTable
from esault.spark.compact import compact
from esault.topology.context import Context
from esault.topology.sink import RunInfo

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

TYPES = ["string", "long", "double", "boolean", "binary", "timestamp", "date", "decimal(38,18)"]
KEY = Column("key", "string")


@st.composite
def schemas(draw: Any) -> Schema:
    names = draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=5))
    return (KEY, *(Column(n, draw(st.sampled_from(TYPES)), draw(st.booleans())) for n in names), *ADDED)


@given(schemas(), schemas())
def test_a_merged_table_holds_the_columns_of_both_and_nothing_is_lost(table: Schema, wanted: Schema) -> None:
    there, here = ({c.name: c for c in schema} for schema in (table, wanted))
    try:
        merged = merge(table, wanted)
    except Unfit as error:
        conflicts = [n for n in there if n in here and wider(there[n].type, here[n].type) is None]
        assert conflicts
        for name in conflicts:
            assert f"column {name!r} was {there[name].python} and is now {here[name].python}" in str(error)
        return
    names = [column.name for column in merged]
    assert sorted(names) == sorted(there.keys() | here.keys())
    assert names[: len(table) - 3] == [column.name for column in table[:-3]]
    assert merged[-3:] == ADDED
    for column in merged:
        for side in (there, here):
            if column.name in side:
                assert wider(side[column.name].type, column.type) == column.type
                assert column.nullable or not side[column.name].nullable
            else:
                assert column.nullable
    assert merge(merged, wanted) == merged == merge(merged, table)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ((Column("word", "string"), Column("total", "string"), *ADDED),
         "column 'total' was int and is now str; declare it as int, or give it another name"),
        ((Column("term", "string"), Column("total", "long"), *ADDED), "its key is 'word', here it is 'term'"),
        ((Column("word", "string"), Column("Total", "long"), *ADDED), "'total' there and 'Total' here differ in case only"),
        ((Column("word", "string"), Column("total", "long")), "the table's column '_id' is not declared"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named_with_the_remedy(wanted: Schema, message: str) -> None:
    with pytest.raises(Unfit, match=message):
        merge((Column("word", "string"), Column("total", "long"), *ADDED), wanted)


def land(path: Path, run: str, columns: dict[str, Any], *rows: tuple[Any, ...]) -> None:
    driver = SparkTable(path, columns, "append")
    driver.check()
    driver.begin(RunInfo(run, "topology", "table"))
    sink = SparkTable(path, columns, "append")
    sink.open(Context("u", run=run))
    sink.write_columns(
        [row[0] for row in rows], [row[1:] for row in rows], 1.0, [f"{run}{i}" for i in range(len(rows))]
    )
    sink.commit(0, sink.prepare(0))
    driver.end(True)


def read(path: Path) -> list[tuple[Any, ...]]:
    schema = arrow_schema(table_log(path).state.schema)
    rows: list[tuple[Any, ...]] = []
    for part in parts(path):
        for batch in pq.read_table(part).to_batches():
            rows += zip(*(column.to_pylist() for column in conform(batch, schema, part).columns[:-3]))
    return rows


def test_an_append_adds_columns_and_widens_types_and_compaction_keeps_them_apart(tmp_path: Path) -> None:
    path = tmp_path / "t"
    land(path, "r1", {"word": str, "total": int, "n": int}, ("a", 1, 7))
    land(
        path, "r2", {"word": str, "total": float, "share": float | None, "n": Decimal}, ("b", 0.5, 0.25, Decimal("0.1"))
    )
    land(path, "r3", {"word": str, "total": int}, ("c", 3))
    expected = [("a", 1.0, 7, None), ("b", 0.5, Decimal("0.1"), 0.25), ("c", 3.0, None, None)]
    assert read(path) == expected
    state = table_log(path).state
    assert state.evolved
    columns = {column.name: column.python for column in state.schema[:-3]}
    assert columns == {"word": "str", "total": "float", "n": "Decimal | None", "share": "float | None"}
    land(path, "r4", {"word": str, "total": int}, ("d", 4))
    assert compact(path).after == 3
    assert sorted(read(path)) == sorted([*expected, ("d", 4.0, None, None)])


def test_an_append_that_does_not_fit_is_refused_before_anything_starts(tmp_path: Path) -> None:
    land(tmp_path / "t", "r1", {"word": str, "total": int}, ("a", 1))
    with pytest.raises(SinkError, match="column 'total' was int and is now str; declare it as int, or give it another"):
        SparkTable(tmp_path / "t", {"word": str, "total": str}, "append").check()
    assert not table_log(tmp_path / "t").state.evolved


def test_an_int_that_is_no_float_is_no_row_of_a_widened_table(tmp_path: Path) -> None:
    land(tmp_path / "t", "r1", {"word": str, "total": int}, ("a", 2**53 + 1))
    land(tmp_path / "t", "r2", {"word": str, "total": float}, ("b", 0.5))
    with pytest.raises(SinkError, match="column 'total' cannot become double: Integer value 9007199254740993 not in"):
        read(tmp_path / "t")


def test_what_a_job_has_read_and_that_parts_differ_are_kept_in_the_log() -> None:
    made = (Input("table", 7, "a1"), Input("code", 0, "b2"))
    schema = (KEY, *ADDED)
    state = TableState()
    for entry in (
        Entry("create", schema=schema),
        Entry("rows", add=(Part("date=2026-01-01/part-1.parquet", 1, 2),), inputs=made, distinct=True),
        Entry("rows", schema=(KEY, Column("n", "long", True), *ADDED), inputs=made, distinct=True),
    ):
        assert decode(encode(entry), "x") == entry
        state.apply(entry)
    assert state.distinct
    again = decode_snapshot(encode_snapshot(state), "x")
    assert (again.inputs, again.evolved, again.files) == (made, True, state.files)
    state.apply(Entry("replace", schema=schema, inputs=made[:1]))
    assert (state.evolved, state.inputs, state.files) == (False, made[:1], {})


@pytest.mark.parametrize("name", ["../x", "/x", "a/x", "a=1/../x", "a=1/", "=1/x", "a=1\\x", "..", ""])
def test_a_part_elsewhere_is_refused(name: str) -> None:
    entry = encode(Entry("rows", add=(Part(name, 1, 1),)))
    with pytest.raises(SinkError, match="a member is missing or wrong"):
        decode(entry, "x")
