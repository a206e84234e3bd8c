"""Changes of an output table: each is a new whole table, and moves no more than it must; and what old owners give where keys have none."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.routing.ring import RING
from esault.routing.table import OutputTable
from esault.routing.table_change import dealt, merged, moved, rescaled, split


@given(st.integers(1, 60), st.integers(0, 60))
def test_all_have_the_same_afterwards_in_few_moves(old, new):
    olds, news = list(range(1, old + 1)), list(range(100, 100 + new))
    moves = dealt(olds, news)
    got, given_away = Counter(), Counter()
    for low, high, giver, taker in moves:
        assert 0 <= low <= high < RING and giver in olds and taker in news
        got[taker] += high - low + 1
        given_away[giver] += high - low + 1
    share = Fraction(RING * old, old + new)
    assert all(abs(RING - given_away[each] - share) <= 1 for each in olds)
    assert all(abs(got[each] - share) <= 2 * old for each in news)
    assert len(moves) < old + new
    for giver in olds:  # no row goes to two
        ranges = sorted((low, high) for low, high, who, _ in moves if who == giver)
        assert all(before[1] < after[0] for before, after in pairwise(ranges))


places = st.integers(0, RING - 1)
counts = st.integers(2, 7)


@given(counts, st.data(), places)
def test_a_split_moves_places_of_its_owner_alone(count, data, place):
    table = OutputTable.even(list(range(count)))
    owner = data.draw(st.integers(0, count - 1))
    after = split(table, owner, 99)
    after.check()
    assert after.owner(place) == table.owner(place) or (table.owner(place), after.owner(place)) == (owner, 99)
    assert len(table.owners()) == count and 99 in after.owners()


@given(counts, st.data(), places)
def test_a_merge_moves_places_of_the_one_that_leaves_alone(count, data, place):
    table = OutputTable.even(list(range(count)))
    owner = data.draw(st.integers(0, count - 1))
    after = merged(split(table, owner, 99), owner)
    after.check()
    assert owner not in after.owners() and owner in table.owners()
    assert table.owner(place) in (owner, after.owner(place))


@given(counts, places)
def test_a_move_changes_the_name_alone(count, place):
    table = OutputTable.even(list(range(count)))
    after = moved(table, 1, 99)
    assert after.owner(place) == (99 if table.owner(place) == 1 else table.owner(place))


@given(counts, st.integers(1, 9))
def test_a_rescale_gives_equal_shares_in_order(count, width):
    table = OutputTable.even(list(range(count)))
    table.version = 17
    after = rescaled(table, list(range(50, 50 + width)))
    after.check()
    sizes = [high - low for low, high, _ in after.intervals()]
    assert after.owners() == list(range(50, 50 + width)) and max(sizes) - min(sizes) <= 1 and after.version == 17


def test_the_only_one_cannot_be_merged_away():
    with pytest.raises(ValueError, match="only sub-unit"):
        merged(OutputTable.single(1), 1)
