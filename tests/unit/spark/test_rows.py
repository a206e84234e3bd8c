"""Columns of a landed table whose names are taken while it is cleaned."""

from __future__ import annotations

import pytest

from esault import UsageError
from esault.sinks.landing.schema import Column
from esault.spark.rows import check_columns


@pytest.mark.parametrize("name", ["__place", "__own", "__", "_metadata", "_METADATA"])
def test_names_that_are_added_on_the_way_are_refused(name):
    with pytest.raises(UsageError, match=f"table sales has a column '{name}': .* under another name"):
        check_columns("sales", (Column("a", "long"), Column(name, "string")))


def test_all_others_may_be_names_of_columns():
    check_columns("sales", [Column(name, "long") for name in ("_id", "metadata", "place", "_", "a__b", "_x")])
