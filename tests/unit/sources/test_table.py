"""Tables in memory as a source."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import EndOfStream, SourceError, TopologyError
from esault.sources import Table
from esault.topology.context import Context

pa = pytest.importorskip("pyarrow")


def opened(table, part=0, parts=1, **options):
    spout = Table(table, **options)
    spout.check()
    spout.open(Context("rows", part=part, parts=parts))
    return spout


def rest(spout, limit=100):
    """All keys and values that are left."""
    found = []
    with pytest.raises(EndOfStream):
        while True:
            columns = spout.read(limit)
            assert 0 < len(columns) <= limit
            keys = columns.keys.to_pylist() if hasattr(columns.keys, "to_pylist") else columns.keys
            found += zip(keys, columns.values.to_pylist())
    return found


@st.composite
def tables(draw):
    """Two columns, whose chunks end in different places and may be empty."""
    rows = draw(st.integers(0, 12))

    def column(first):
        cuts = [0, *sorted(draw(st.lists(st.integers(0, rows), max_size=3))), rows]
        chunks = [list(range(first + a, first + b)) for a, b in itertools.pairwise(cuts)]
        return pa.chunked_array(chunks, type=pa.int64())

    return pa.table({"a": column(0), "b": column(100)})


@given(table=tables(), parts=st.integers(1, 4), limit=st.integers(1, 5))
def test_however_a_table_lies_in_memory_its_readers_have_each_row_once_in_order(table, parts, limit):
    found = [row for part in range(parts) for row in rest(opened(table, part, parts, key="a"), limit)]
    assert found == [(row["a"], row) for row in table.to_pylist()]


@given(table=tables(), before=st.integers(0, 12), limit=st.integers(1, 5))
def test_a_reader_goes_on_behind_what_was_read(table, before, limit):
    first = opened(table)
    while first.position() + limit <= min(before, table.num_rows):
        first.read(limit)
    assert first.read(0) == []
    later = opened(table)
    later.seek(first.position())
    assert later.progress() == (first.position(), table.num_rows)
    assert rest(later, limit) == [(None, row) for row in table.to_pylist()[first.position() :]]


def test_fewer_rows_than_were_read_are_refused():
    with pytest.raises(SourceError, match="an earlier run has read 3 rows, and now there are only 2"):
        opened(pa.table({"a": [1, 2]})).seek(3)


def test_tables_of_other_libraries():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for table in (
        pandas.DataFrame({"a": ["x", "y"]}, index=[7, 8]),
        polars.DataFrame({"a": ["x", "y"]}),
        pa.record_batch({"a": ["x", "y"]}),
    ):
        assert rest(opened(table, key=lambda row: row["a"].upper())) == [("X", {"a": "x"}), ("Y", {"a": "y"})]


@pytest.mark.parametrize(
    ("table", "options", "kind", "said"),
    [
        ([1], {}, TopologyError, "list is no table; give a DataFrame"),
        (pa.table({"a": [1]}), {"key": "b"}, SourceError, "there is no column 'b'; there are 'a'"),
        (pa.table({"a": [1]}), {"columns": ["b"]}, SourceError, "there is no column 'b'"),
        (pa.table({"a": [1.5]}), {"key": "a"}, SourceError, "column 'a': .*name another column"),
        (pa.table({"a": [1]}), {"columns": "a"}, TopologyError, "columns='a': write a list of names"),
    ],
)
def test_what_cannot_be_read_is_said_before_anything_starts(table, options, kind, said):
    with pytest.raises(kind, match=said):
        Table(table, **options).check()
