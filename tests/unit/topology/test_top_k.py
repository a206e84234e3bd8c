"""The greatest values of a window, as an object that moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import TopologyError
from esault.topology.top_k import TopK


def emitted(top):
    found = []
    top.key = "a"
    top.emit = lambda key, value: found.append((key, value))
    top.finish()
    return found


class Top(TopK):
    """One whose `emit` a test may set."""


@given(values=st.lists(st.tuples(st.integers(0, 5), st.integers())), k=st.integers(1, 4), cut=st.integers(0, 9))
def test_the_greatest_come_first_and_of_equal_ones_those_that_came_first_also_where_it_moves(values, k, cut):
    top, moved = Top(k, by=lambda value: value[0]), Top(k, by=lambda value: value[0])
    for value in values[:cut]:
        top.process("a", value)
    moved.__setstate__(top.__getstate__())
    for value in values[cut:]:
        moved.process("a", value)
    expected = sorted(values, key=lambda value: -value[0])[:k]
    assert emitted(moved) == [("a", tuple(expected))]
    assert len(moved.best) <= k


def test_without_a_function_values_are_compared_themselves():
    top = Top(2)
    for value in (3, 1, 2):
        top.process("a", value)
    assert emitted(top) == [("a", (3, 2))]


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize("bad", [None, (2, None)])
def test_a_value_that_cannot_be_compared_raises_and_changes_nothing(place, bad):
    values = [(n % 3, n) for n in (5, 2, 7, 1, 6, 8, 3)]
    if bad is not None and place == 0:
        return  # nothing to compare it with
    top = Top(5)
    for value in values[:place]:
        top.process("a", value)
    before = list(top.best)
    try:
        top.process("a", bad)
    except TypeError:
        assert top.best == before
    else:
        assert bad is not None  # none of those that it was compared with begins alike
        return
    for value in values[place:]:
        top.process("a", value)
    assert emitted(top) == [("a", tuple(sorted(values, reverse=True)[:5]))]


@pytest.mark.parametrize(("k", "by"), [(0, None), (True, None), (1.5, None), (1, "price")])
def test_what_cannot_be_is_refused(k, by):
    with pytest.raises(TopologyError, match="TopK: (k|by)="):
        TopK(k, by)


def test_nan_hides_none_that_are_greater():
    top = Top(2)
    for value in (float("nan"), 3, float("nan"), 5, 4, float("nan")):
        top.process("a", value)
    assert emitted(top) == [("a", (5, 4))]
