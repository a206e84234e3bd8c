"""Who keys move to: the same for a row of a key and for a look at all keys, whatever was asked before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.handover.divide import MovedKeys
from esault.routing.ring import INT_MAX, position

keys = st.one_of(st.text(max_size=4), st.integers(-2, 2), st.booleans(), st.tuples(st.integers(0, 1), st.booleans()))


@given(st.lists(keys, max_size=30), st.integers(0, INT_MAX - 1))
def test_a_look_at_a_key_and_a_row_of_it_name_the_same_owner(asked, middle):
    moved = MovedKeys([(middle + 1, INT_MAX, 9), (0, middle, 0)])
    for key in asked:
        expected = 9 if position(key) > middle else 0
        assert (moved.owner_of(key), moved[key], moved.owner_of(key)) == (expected, expected, expected)
    moved.rename(9, 11)
    assert [moved.owner_of(key) for key in asked] == [11 if position(key) > middle else 0 for key in asked]


def test_a_look_keeps_nothing():
    moved = MovedKeys([(0, INT_MAX, 5)])
    assert [moved.owner_of(f"k{i}") for i in range(3)] == [5, 5, 5]
    assert dict(moved) == {}
    assert MovedKeys([(0, 0, 7)], everything=True).owner_of("any") == 7
