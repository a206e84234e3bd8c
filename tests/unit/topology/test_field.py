"""Functions that give a field of a value."""

from __future__ import annotations

from operator import attrgetter, itemgetter

import pyarrow as pa
import pytest

from esault.topology.field import column_of, field_name


@pytest.mark.parametrize("name", ["a", "", "ü", "a.b"])
def test_an_itemgetter_of_one_name_is_known_by_it(name):
    assert field_name(itemgetter(name)) == name


@pytest.mark.parametrize(
    "function",
    [itemgetter(0), itemgetter("a", "b"), itemgetter(slice(1)), attrgetter("a"), lambda v: v["a"], str, None],
)
def test_others_are_not_known(function):
    assert field_name(function) is None


def test_a_column_is_found_by_its_name_where_there_is_one():
    batch = pa.record_batch([[1], [2], [3]], names=["a", "b", "b"])
    assert column_of("a", batch).to_pylist() == [1]
    for name in ("b", "c", "", None):
        assert column_of(name, batch) is None
    assert column_of("a", [{"a": 1}]) is None and column_of("a", None) is None
