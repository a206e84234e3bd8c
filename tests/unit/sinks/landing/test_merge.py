"""Rows of landed tables put together, beside plain loops."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.sinks.landing.compaction import write_part
from esault.sinks.landing.disk import LocalDisk
from esault.sinks.landing.entry import Part
from esault.sinks.landing.merge import codes, first_of_each, newest_of_each, read_parts, there
from esault.sinks.landing.schema import UPSERT_ADDED, Column

pa = pytest.importorskip("pyarrow")

UPDATED, DELETED = (column.name for column in UPSERT_ADDED)


def upserts(rows):
    """Of (key, other key, at, deleted)."""
    columns = list(zip(*rows)) or [[]] * 4
    names = pa.array(columns[0], pa.string()), pa.array(columns[1], pa.int64())
    at = pa.array(columns[2], pa.timestamp("us", tz="UTC"))
    arrays = [*names, at, pa.array(columns[3], pa.bool_()), pa.array(range(len(rows)), pa.int64())]
    return pa.table(arrays, ["k", "n", UPDATED, DELETED, "row"])


ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from([1, 2, None]), st.integers(0, 3), st.booleans()),
    max_size=12,
)


@given(ROWS, st.sampled_from([["k"], ["k", "n"], ["n", "k"]]), st.integers(0, 12))
def test_of_each_key_the_newest_row_stays_and_of_two_as_new_the_one_behind(rows, key, cut):
    table = upserts(rows)
    table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])  # in several chunks
    best = {}
    for at, row in enumerate(rows):
        named = tuple(row["kn".index(name)] for name in key)
        if named not in best or row[2] >= rows[best[named]][2]:
            best[named] = at
    assert sorted(newest_of_each(table, key)["row"].to_pylist()) == sorted(best.values())


@given(ROWS, st.sampled_from([None, 0, 1, 2]))
def test_deletions_go_but_for_those_that_are_newer_than_is_asked_for(rows, after):
    wanted = [at for at, row in enumerate(rows) if not row[3] or (after is not None and row[2] > after)]
    assert there(upserts(rows), after)["row"].to_pylist() == wanted


def test_a_deletion_of_the_very_moment_goes_too():
    rows = [("a", 1, 2, True), ("b", 1, 3, True), ("c", 1, 0, False)]
    assert there(upserts(rows), 2)["k"].to_pylist() == ["b", "c"]
    assert newest_of_each(upserts([("a", 1, 2, False), ("a", 2, 3, False)]), ["k"])["n"].to_pylist() == [2]


@given(ROWS)
def test_a_code_is_the_same_where_all_columns_are(rows):
    found = codes(upserts(rows), ["k", "n", DELETED]).to_pylist() if rows else []
    named = [(row[0], row[1], row[3]) for row in rows]
    assert [a == b for a in found for b in found] == [a == b for a in named for b in named]
    assert set(found) == set(range(len(set(named))))


@given(st.lists(st.tuples(st.sampled_from(["r1", "r2"]), st.sampled_from(["x", "y", None])), max_size=12))
def test_of_what_a_replay_repeated_the_first_stays_and_what_has_no_id_stays(rows):
    numbers = pa.array(range(len(rows)), pa.int64())
    runs, ids = ([row[i] for row in rows] for i in (0, 1))
    arrays = [
        numbers,
        pa.array(ids, pa.string()),
        numbers.cast(pa.timestamp("us", tz="UTC")),
        pa.array(runs, pa.string()),
    ]
    table = pa.table(arrays, ["row", "_id", "_time", "_run"])
    seen, wanted = set(), []
    for at, row in enumerate(rows):
        if row[1] is None or row not in seen:
            wanted.append(at)
        seen.add(row)
    assert first_of_each(table)["row"].to_pylist() == wanted
    plain = table.select(["row", "_id"])
    assert first_of_each(plain) is plain


def test_parts_are_read_with_the_columns_of_the_table_and_what_one_lacks_is_null(tmp_path):
    disk, folder = LocalDisk(), str(tmp_path)
    old = write_part(folder, disk, "", pa.table({"k": ["a", "b"]}))
    new = write_part(folder, disk, "", pa.table({"k": ["c"], "n": pa.array([3], pa.int64())}), base=True)
    assert (old.rows, old.base, new.base) == (2, False, True)
    assert sorted(os.listdir(tmp_path)) == sorted([old.path, new.path])
    assert new.bytes == os.path.getsize(tmp_path / new.path)
    schema = (Column("k", "string"), Column("n", "long"))
    assert read_parts(folder, [old, new], schema).to_pydict() == {"k": ["a", "b", "c"], "n": [None, None, 3]}
    assert read_parts(folder, [new], schema, ["n"]).to_pydict() == {"n": [3]}
    with pytest.raises(SinkError, match="has 2 rows, and the log says 5: the file was changed"):
        read_parts(folder, [Part(old.path, 5, 1)], schema)
    with pytest.raises(SinkError, match="gone is gone: the table was compacted or replaced since"):
        read_parts(folder, [Part("gone", 5, 1)], schema)
    (tmp_path / old.path).write_bytes(b"no parquet")
    with pytest.raises(SinkError, match="cannot be read .*restore it from a backup"):
        read_parts(folder, [old], schema)
