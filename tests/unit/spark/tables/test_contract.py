"""How the columns of a table may change."""

from __future__ import annotations

import pytest

from esault.errors import UsageError
from esault.sinks.landing.schema import Column
from esault.spark.tables.contract import check_contract, evolved

A, B = Column("a", "long", True), Column("b", "string", True)
C = Column("c", "double", True)


def test_a_new_table_has_the_columns_that_come():
    assert evolved("t", (), (A, B), "fail") == (A, B)


def test_a_new_column_is_taken_where_that_is_asked_for():
    assert [column.name for column in evolved("t", (A,), (A, B), "append_new_columns")] == ["a", "b"]


def test_where_it_is_not_it_is_named_with_the_remedy():
    with pytest.raises(UsageError, match=r"table t: its columns change.*: b \(.*append_new_columns.*--job table:t"):
        evolved("t", (A,), (A, B), "fail")


@pytest.mark.parametrize("change", ["fail", "append_new_columns"])
def test_the_same_columns_in_another_order_or_fewer_are_no_change(change):
    before = (A, B, C)
    assert evolved("t", before, (A, C, B), change) == before == evolved("t", before, (A, B), change)


@pytest.mark.parametrize("change", ["fail", "append_new_columns"])
def test_another_type_cannot_be(change):
    with pytest.raises(UsageError, match="esault analyze --full --job table:t"):
        evolved("t", (A,), (Column("a", "string", True),), change)


def test_without_a_promise_nothing_is_looked_at():
    check_contract("t", None, None)
