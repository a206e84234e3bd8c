"""Who keys move to: the same for a row of a key and for a look at all keys, whatever was asked before."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.handover.divide import DealtRows, MovedKeys
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


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_rows_are_dealt_by_shares_whatever_they_are_and_however_they_come(parts, batches):
    whole = sum(parts)
    bounds = [sum(parts[:i]) * (INT_MAX + 1) // whole for i in range(len(parts) + 1)]
    ranges = [(bounds[i], bounds[i + 1] - 1, i) for i in range(1, len(parts))]  # the first part stays
    rows = sum(batches)
    at_once = DealtRows(ranges).of_rows([None] * rows)
    dealt = DealtRows(ranges)
    assert [who for many in batches for who in dealt.of_rows(tuple(range(many)))] == at_once
    got = Counter(at_once)
    assert all(abs(got[i] - rows * part / whole) <= 2 for i, part in enumerate(parts))


def test_no_long_run_of_dealt_rows_goes_one_way():
    half = DealtRows([((INT_MAX + 1) // 2, INT_MAX, 9)]).of_rows(range(1000))
    assert not any(len(set(half[i : i + 3])) == 1 for i in range(len(half) - 3))
    quarters = [(low * (INT_MAX + 1) // 4, (low + 1) * (INT_MAX + 1) // 4 - 1, low) for low in (1, 2, 3)]
    assert sorted(DealtRows(quarters).of_rows(range(6))) in ([0, 0, 1, 1, 2, 3], [0, 0, 1, 2, 2, 3], [0, 0, 1, 2, 3, 3])


def test_dealt_rows_go_to_the_successor_of_a_dead_one_and_all_stay_where_none_moves():
    dealt = DealtRows([(0, INT_MAX, 9)])
    assert dealt.of_rows("ab") == [9, 9]
    dealt.rename(9, 11)
    assert dealt.of_rows("ab") == [11, 11]
    assert DealtRows(()).of_rows("ab") == [0, 0]
