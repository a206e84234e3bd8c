"""Rows of a table with a primary key on their way into a part: of each key the newest, stamped as newer than all before."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.sinks.landing.changelog import Changelog, stamps
from esault.sinks.landing.schema import Column

KEY, NAME, OUT = Column("id", "long"), Column("name", "string"), Column("out", "boolean")


def changelog(*columns, key=("id",), deleted=None, newest=0, now=lambda: 1.0):
    return Changelog("sink 'out'", columns or (KEY, NAME), key, deleted, now, newest)


def newest(made, keys, values):
    """key -> (other columns, stamp, whether it is a deletion); the stamps are 0, 1, 2 ..."""
    kept, cells, micros, gone = made.cells(list(keys), list(values), array("q", range(len(keys))))
    assert len(set(map(repr, kept))) == len(kept)
    columns = [column for column, _ in cells]
    return {key: ([column[i] for column in columns], micros[i], gone[i]) for i, key in enumerate(kept)}


def test_of_each_key_the_last_row_stands():
    assert newest(changelog(), [1, 2, 1, 3], ["a", "b", "c", "d"]) == {
        1: (["c"], 2, False),
        2: (["b"], 1, False),
        3: (["d"], 3, False),
    }
    assert newest(changelog(), [1, 2], ["a", "b"])[1] == (["a"], 0, False)


def test_none_deletes_a_key_and_its_columns_are_null_then():
    made = changelog(KEY, NAME, OUT)
    found = newest(made, [1, 2, 1], [("a", True), ("b", False), None])
    assert found == {1: ([None, None], 2, True), 2: (["b", False], 1, False)}
    assert newest(made, [1, 1], [None, ("a", True)]) == {1: (["a", True], 1, False)}
    assert newest(made, [1], [None]) == {1: ([None, None], 0, True)}
    _, cells, _, _ = made.cells([1], [None], array("q", [0]))
    assert [nulls for _, nulls in cells] == [True, True]
    _, cells, _, _ = made.cells([1], [("a", True)], array("q", [0]))
    assert [nulls for _, nulls in cells] == [False, False]


@pytest.mark.parametrize("gone", [None, ("b", True)])
def test_a_null_is_refused_also_beside_a_deletion(gone):
    made = changelog(KEY, NAME, Column("out", "boolean", True), deleted=None if gone is None else "out")
    with pytest.raises(SinkError, match=r"column 'name' is str, but key 2 has None, .* declare the column with"):
        newest(made, [1, 2], [gone, {"out": False}])
    assert newest(made, [1, 2], [gone, ("b", None)])[2] == (["b", None], 1, False)


def test_a_column_may_say_that_a_row_is_gone():
    made = changelog(KEY, NAME, Column("out", "boolean", True), deleted="out")
    assert newest(made, [1, 2, 1], [("a", False), ("b", None), ("c", True)]) == {
        1: (["c", True], 2, True),
        2: (["b", None], 1, False),
    }
    assert newest(changelog(Column("gone", "boolean"), NAME, key=("gone",), deleted="gone"), [True], ["a"]) == {
        True: (["a"], 0, True)
    }


def test_a_primary_key_may_be_of_several_columns():
    made = changelog(KEY, NAME, OUT, key=("id", "name"))
    kept, cells, micros, gone = made.cells([1, 1, 1], [("a", True), ("b", True), ("a", False)], array("q", [0, 1, 2]))
    assert sorted(zip(kept, *(column for column, _ in cells), micros, gone)) == [
        (1, "a", False, 2, False),
        (1, "b", True, 1, False),
    ]
    with pytest.raises(SinkError, match="the primary key .id, name. is not the tuple's key alone"):
        made.cells([1], [None], array("q", [0]))


def test_keys_that_python_takes_for_equal_are_looked_at_before_one_of_them_goes():
    for keys in ([1, True], [True, 1], [1, 1.0]):
        with pytest.raises(SinkError, match=r"column 'id' is int, but a key is (True|1.0)"):
            newest(changelog(), keys, ["a", "b"])
    double = Column("id", "double")
    assert newest(changelog(double, NAME), [1, 1.0], ["a", "b"]) == {1.0: (["b"], 1, False)}
    both = changelog(Column("id", "string"), Column("n", "long"), NAME, key=("id", "n"))
    with pytest.raises(SinkError, match=r"column 'n' is int, but key 'k' has True"):
        both.cells(["k", "k"], [(1, "a"), (True, "b")], array("q", [0, 1]))


def test_stamps_always_grow_and_are_newer_than_what_the_table_holds():
    times = iter([5.0, 5.0, 4.0, 9.0])
    made = changelog(newest=4_000_000, now=lambda: next(times))
    assert [made.stamp(), made.stamp(), made.stamp()] == [5_000_000, 5_000_001, 5_000_002]
    made.seen(20_000_000)
    made.seen(6_000_000)
    assert made.newest == 20_000_000
    assert made.stamp() == 20_000_001
    assert changelog(newest=7_000_000).stamp() == 7_000_001
    assert list(stamps(7, 3)) == [7, 7, 7]


def test_only_columns_of_the_key_are_never_null():
    assert [column.nullable for column in changelog(KEY, NAME, OUT, key=("id", "name")).columns] == [False, False, True]


@given(st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), st.text(max_size=2))), min_size=1, max_size=30))
def test_what_stands_is_what_a_plain_loop_says(rows):
    last = {}
    for at, (key, value) in enumerate(rows):
        last[key] = ([value], at, value is None)
    assert newest(changelog(), [key for key, _ in rows], [value for _, value in rows]) == last
