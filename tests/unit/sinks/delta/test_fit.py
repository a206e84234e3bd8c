"""A Delta table that is there, and what a sink declares."""

from __future__ import annotations

import pytest

from esault.errors import SinkError
from esault.sinks.delta.fit import Declared, new_columns, parse_partitions
from esault.sinks.landing.schema import Column

KEY, N = Column("key", "string"), Column("n", "long", True)


def declared(*columns, partition_by=(), primary_key=(), merges=False):
    return Declared("t", columns or (KEY, N), partition_by, primary_key, merges)


def there(*columns, partition_by=(), trouble=(), append_only=False):
    columns = columns or (("key", "string", False), ("n", "long", True))
    return {
        "trouble": list(trouble),
        "append_only": append_only,
        "partition_by": list(partition_by),
        "columns": [list(column) for column in columns],
    }


def test_the_same_columns_in_any_order_need_none():
    assert new_columns(declared(), there()) == set()
    assert new_columns(declared(N, KEY), there()) == set()
    assert new_columns(declared(KEY, Column("n", "long")), there()) == set(), "no nulls are written"


def test_where_schemas_merge_columns_are_added_and_others_stay_null():
    table = there(("key", "string", False), ("old", "long", True))
    assert new_columns(declared(merges=True), table) == {"n"}
    with pytest.raises(SinkError, match=r'new here: n; only there: old \(schema_mode="merge"'):
        new_columns(declared(), table)


@pytest.mark.parametrize(
    ("here", "table", "said"),
    [
        (declared(), there(trouble=["a", "b"]), "asks more of its writers than DeltaSink does: a; b"),
        (declared(primary_key=("key",)), there(append_only=True), "takes no changes of rows"),
        (declared(partition_by=("key",)), there(), r"is partitioned by \[\], and DeltaSink says \['key'\]"),
        (declared(), there(("Key", "string", False), ("n", "long", True)), "'Key' there and 'key' here differ in case"),
        (
            declared(),
            there(("key", "string", False), ("n", "double", True)),
            r"'n' is double there and long \(int \| None\) here",
        ),
        (declared(), there(("key", "string", False), ("n", "long", False)), "'n' cannot be null there"),
        (
            declared(merges=True),
            there(("key", "string", False), ("n", "long", True), ("must", "long", False)),
            "'must' there cannot be null and is not declared",
        ),
    ],
)
def test_what_does_not_go_together(here, table, said):
    with pytest.raises(SinkError, match=f"Delta table t .*{said}"):
        new_columns(here, table)


def test_all_differences_are_told_at_once():
    with pytest.raises(SinkError, match="'n' is double there.*; new here: more; only there: less"):
        new_columns(
            declared(KEY, N, Column("more", "long")),
            there(("key", "string", False), ("n", "double", True), ("less", "long", True)),
        )


def test_columns_that_divide_a_table():
    assert parse_partitions((KEY, N), "key") == ("key",)
    assert parse_partitions((KEY, N), ()) == ()
    assert parse_partitions((KEY, N, Column("day", "date")), ["day", "key"]) == ("day", "key")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["key", "key"], "must name some of the columns, once each"),
        (["key", "n"], "must name some of the columns"),
        ("day", "names 'day', which is no column; the columns are key, n, at"),
        ("at", "a column of float; possible are str, int, bool and date"),
    ],
)
def test_columns_that_cannot(names, said):
    columns = (KEY, N, Column("at", "double")) if "some" not in said else (KEY, N)
    with pytest.raises(SinkError, match=said):
        parse_partitions(columns, names)
