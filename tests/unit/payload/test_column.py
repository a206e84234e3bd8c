"""Columns: what may be one, what is said of what may not, and rows made of them."""

from __future__ import annotations

import subprocess
import sys
from array import array
from collections import deque
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas
import pyarrow as pa
import pytest

import esault
from esault.errors import PayloadError
from esault.payload.column import checked, is_array, is_column, plain, take

MOMENT = datetime(2026, 7, 1, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize("column", [(1, 2), [1, 2]])
def test_a_tuple_or_a_list_is_a_column_as_it_is(column):
    assert checked(column, "keys") is checked(column, "values") is column
    assert not is_array(column)
    assert plain(column) is column


@pytest.mark.parametrize(
    "column", [range(2), deque([0, 1]), {0: 5, 1: 5}.keys(), {5: 0, 6: 1}.values(), array("q", [0, 1])]
)
def test_any_other_sequence_becomes_a_list(column):
    assert checked(column, "keys") == [0, 1]


@pytest.mark.parametrize(
    "column",
    [
        np.array([1, -2]),
        np.array([1, 2], ">u2"),
        np.array([True, False]),
        np.array(["a", "bcd"]),
        np.array([b"a", b"bcd"]),
        np.arange(10)[::-3],
        pa.array([1, None], pa.int8()),
        pa.array(["a", None]),
        pa.array([b"ab"], pa.binary(2)),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.nulls(2),
    ],
)
def test_these_arrays_are_columns_of_keys_and_of_values(column):
    assert checked(column, "keys") is column
    assert checked(column, "values") is column
    assert is_array(column)
    assert is_column(column)


@pytest.mark.parametrize(
    ("column", "items"),
    [
        (np.array([0.5, np.inf], "f2"), [0.5, float("inf")]),
        (np.array(["2026-07-01", "NaT"], "M8[D]"), [date(2026, 7, 1), None]),
        (np.array(["2026-07-01T12"], "M8[us]"), [datetime(2026, 7, 1, 12)]),
        (pa.array([Decimal("1.5")]), [Decimal("1.5")]),
        (pa.array([MOMENT], pa.timestamp("us", "UTC")), [MOMENT]),
        (pa.array([[1, 2], [], None]), [[1, 2], [], None]),
        (pa.array([{"a": [1], "b": None}]), [{"a": [1], "b": None}]),
        (pa.record_batch({"a": [1, 2], "b": ["x", None]}), [{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
    ],
)
def test_these_are_values_and_rows_have_plain_objects_of_them(column, items):
    found = plain(checked(column, "values"))
    assert found == items
    assert list(map(type, found)) == list(map(type, items))


def test_numbers_and_texts_of_numpy_become_pythons_own():
    for column in (np.array([1]), np.array([True]), np.array(["a"]), np.array([b"a"]), np.array([1.5], "f4")):
        assert type(plain(column)[0]) in (int, bool, str, bytes, float)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (np.array([object()]), r"dtype object cannot travel: .*; use values\.tolist\(\)"),
        (np.zeros((2, 2)), r"shape \(2, 2\) is no column.*RecordBatch"),
        (np.array(5), r"shape \(\) is no column"),
        (np.array([1j]), r"dtype complex128 .*RecordBatch of values\.real and values\.imag"),
        (np.array([1], "m8[s]"), r"dtype timedelta64\[s\] .*use values\.astype\(np\.int64\)"),
        (np.array([1], "M8[ns]"), r"finer than a datetime can be; use values\.astype\('datetime64\[us\]'\)"),
        (np.array([10**9], "M8[D]"), r"beyond the years 1 to 9999.*astype\(np\.int64\)"),
        (np.array([(1, 2)], "i4,i4"), r"use a pyarrow\.RecordBatch of its fields"),
        (np.array([1], np.longdouble), r"use values\.astype\(np\.float64\)"),
        (np.array(["\udc80"]), r"lone surrogate.*np\.char\.encode"),
        (np.ma.array([1, 2], mask=[0, 1]), r"with a mask.*filled"),
        (pa.array([1], pa.time64("us")), r"time64\[us\] .*cast it"),
        (pa.array([1], pa.duration("s")), r"duration\[s\] .*cast it"),
        (pa.array([1], pa.timestamp("ns")), r"nanoseconds.*timestamp\('us'\)"),
        (pa.array([[1]], pa.list_(pa.timestamp("ns"))), r"nanoseconds"),
        (pa.array([0], pa.timestamp("us", "Nowhere/Land")), r"time zone is not known here"),
        (pa.record_batch([[1], [2]], names=["a", "a"]), r"two columns of one name"),
        (pa.chunked_array([[1]]), r"use values\.combine_chunks\(\)"),
        (pa.table({"a": [1]}), r"emit each of values\.to_batches\(\)"),
        (pandas.Series([1]), r"pandas\.Series is no column; use values\.to_numpy\(\)"),
        (pandas.DataFrame({"a": [1]}), r"RecordBatch\.from_pandas\(values\)"),
        ("text", r"str is no column; pass a list"),
        (5, r"int is no column; pass a list"),
        ((x for x in [1]), r"generator is no column; use list\(values\)"),
        ({1, 2}, r"set is no column; use list\(values\)"),
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, str) else "",
)
def test_what_is_no_column_of_values_is_refused_with_the_remedy(column, said):
    with pytest.raises(PayloadError, match=f"^values: .*{said}"):
        checked(column, "values")


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (np.array([1.5]), r"dtype float64 cannot be keys.*np\.round\(keys \* 100\)"),
        (np.array(["2026"], "M8[D]"), r"cannot be keys.*keys\.astype\(np\.int64\)"),
        (pa.array([1.5]), r"double cannot be keys.*keys\.cast"),
        (pa.array([[1]]), r"cannot be keys"),
        (pa.record_batch({"a": [1]}), r"RecordBatch cannot be keys; use one of its columns"),
    ],
)
def test_what_cannot_be_keys_is_refused_with_the_remedy(column, said):
    with pytest.raises(PayloadError, match=f"^keys: .*{said}"):
        checked(column, "keys")


def test_an_empty_array_is_a_column_whatever_numpy_takes_it_for():
    for empty in (np.array([]), np.array([], object)):
        assert len(checked(empty, "keys")) == len(checked(empty, "values")) == 0


def test_texts_that_are_all_empty_have_a_width_of_one():
    column = checked(np.zeros(3, "S0") if np.zeros(3, "S0").dtype.itemsize == 0 else np.array([b""] * 3), "values")
    assert column.dtype.itemsize == 1
    assert plain(column) == [b""] * 3


def test_a_damaged_arrow_array_is_found_where_it_is_emitted():
    damaged = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(bytes([0, 0, 0, 0, 1, 0, 0, 0])), pa.py_buffer(b"\xff")]
    )
    with pytest.raises(PayloadError, match="is damaged: .*UTF8"):
        checked(damaged, "values")


@pytest.mark.parametrize("places", [array("q", [3, 0, 0]), np.array([3, 0, 0])], ids=["array", "numpy"])
@pytest.mark.parametrize(
    "column",
    [
        list("abcd"),
        tuple("abcd"),
        np.array(list("abcd")),
        np.array(list("abcdefgh"))[::2],
        pa.array(list("abcd")),
        pa.array(list("xabcd"))[1:],
        pa.record_batch({"a": list("abcd")}),
    ],
    ids=lambda c: type(c).__name__,
)
def test_items_are_taken_by_their_places(column, places):
    items = plain(column)
    assert list(plain(take(column, places))) == [items[3], items[0], items[0]]


def test_looking_at_columns_loads_neither_library():
    code = (
        "import sys; from esault.payload.column import checked, plain, is_column; import esault.testing, esault.flow.worker.bolt_unit;"
        "checked([1], 'keys'), plain((1,)), is_column((1,)), is_column(5);"
        "print([n for n in ('numpy', 'pyarrow', 'pandas') if n in sys.modules])"
    )
    root = str(Path(esault.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
