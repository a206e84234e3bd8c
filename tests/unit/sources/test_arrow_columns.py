"""Batches of Arrow as tuples: which columns come, of which types, and what is the key."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from esault.errors import SourceError, TopologyError
from esault.sources.arrow_columns import ArrowColumns, _fitting, arrow


@pytest.mark.parametrize(
    ("key", "columns", "said"),
    [
        (1, None, "Table: key=1: write the name of a column, or a function of the row"),
        (None, "a", "columns='a': write a list of names"),
        (None, [], "write a list of names"),
        (None, ["a", 1], "write a list of names"),
    ],
)
def test_what_cannot_be_is_refused(key, columns, said):
    with pytest.raises(TopologyError, match=said):
        ArrowColumns("Table", key, columns)


BATCH = pa.RecordBatch.from_pydict({"n": [1, 2], "s": ["a", "b"]})


def tuples(batch=BATCH, key=None, columns=None):
    found = ArrowColumns("Table", key, columns).of("x.arrow", batch.schema, "unnamed").tuples(batch)
    return list(zip(list(found.keys), pa.RecordBatch.to_pylist(found.values)))


def test_a_name_stands_once_and_the_key_need_not_be_a_value():
    assert tuples(columns=["n", "n"]) == [("unnamed", {"n": 1}), ("unnamed", {"n": 2})]
    keys = ArrowColumns("Table", "s", ["n"]).of("x", BATCH.schema, None).tuples(BATCH).keys
    assert pa.array(keys).to_pylist() == ["a", "b"]


def test_the_function_of_the_key_sees_the_columns_that_are_read_and_is_named_where_it_fails():
    assert tuples(key=lambda row: row["s"] * 2) == [("aa", {"n": 1, "s": "a"}), ("bb", {"n": 2, "s": "b"})]
    with pytest.raises(SourceError, match=r"x.arrow: the function key=, given \{'s': 'a'\}: KeyError.*'n'"):
        tuples(key=lambda row: row["n"], columns=["s"])


def test_a_column_that_is_not_there_or_is_there_twice_is_said():
    with pytest.raises(SourceError, match="x.arrow: there is no column 'z'; there are 'n', 's'"):
        tuples(columns=["z"])
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])
    with pytest.raises(SourceError, match="two columns are named 'n'; rename one"):
        tuples(twice)


def test_what_a_narrower_type_cannot_hold_stops_the_run():
    batch = pa.RecordBatch.from_arrays([pa.array([1], pa.timestamp("ns"))], names=["at"])
    with pytest.raises(SourceError, match=r"column 'at': holds what timestamp\[us\] cannot"):
        tuples(batch)


@pytest.mark.parametrize(
    ("kind", "fit"),
    [
        (pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")),
        (pa.float16(), pa.float32()),
        (pa.dictionary(pa.int8(), pa.timestamp("ns")), pa.dictionary(pa.int8(), pa.timestamp("us"))),
        (pa.struct([("at", pa.timestamp("ns"))]), pa.struct([("at", pa.timestamp("us"))])),
        (pa.list_(pa.float16()), pa.list_(pa.float32())),
        (pa.large_list(pa.float16()), pa.large_list(pa.float32())),
        (pa.string_view(), pa.large_string()),
        (pa.binary_view(), pa.large_binary()),
        (pa.int64(), pa.int64()),
    ],
    ids=str,
)
def test_the_nearest_type_whose_items_can_travel(kind, fit):
    assert _fitting(kind) == fit


def test_without_pyarrow_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SourceError, match=r"Table reads with pyarrow: pip install 'esault\[parquet\]'"):
        arrow("Table")
