"""Rows by key, merged as Spark does it: names that keys may have, and what stands where two have one sequence."""

from __future__ import annotations

from typing import Any

from esault.spark.tables import merge

KEYS = ["last", "one"]
COLUMNS = f"`last` string, `one` bigint, at bigint, `row` string, `{merge.DELETED}` boolean"


def test_keys_have_any_name_and_a_row_counts_more_than_a_deletion_of_its_sequence(spark: Any) -> None:
    came = [("a", 1, 5, "x", True), ("a", 1, 5, "y", False), ("b", 2, 7, None, True), ("c", 3, 4, "z", False)]
    changes = spark.createDataFrame(came, COLUMNS)
    gone = changes.where("`row` = 'z'").select("last", "one", "at")  # known from before
    newest = merge.newest(None, changes, gone, KEYS, "at")
    assert sorted(map(tuple, newest.collect())) == [("a", 1, 5, "y"), ("c", 3, 4, "z")]
    history = merge.history(None, changes, gone, KEYS, "at")
    assert sorted(map(tuple, history.collect())) == [("a", 1, 5, "y", 5, None), ("c", 3, 4, "z", 4, None)]
