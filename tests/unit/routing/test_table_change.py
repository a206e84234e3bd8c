"""Changes of an output table: each is a new whole table, and moves no more than it must; and what old owners give where keys have none."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.routing.ring import RING
from esault.routing.table import Move, OutputTable
from esault.routing.table_change import dealt, merged, moved, rescaled, split, subscales


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


@given(counts, counts, st.integers(1, 40))
def test_subscales_move_the_same_places_to_the_same_owners_each_once(before, after, many):
    table = OutputTable.even(range(1, before + 1))
    to = rescaled(table, range(1, after + 1))
    moves = table.moves_to(to)
    parts = subscales(moves, many)
    assert len(parts) <= many
    now = table.copy()
    for part in parts:
        for move in part:
            assert all(now.owner(place) == move.old for place in (move.low, move.high))
            now.assign(move.low, move.high, move.new)
            now.check()
        largest = max(move.high - move.low + 1 for move in moves)
        assert max(move.high - move.low + 1 for move in part) <= largest // many + 1
    now.join_cuts({low for low, _, _ in to.intervals()})
    assert now.snapshot()[1] == to.snapshot()[1]


def test_a_range_of_few_places_has_fewer_subscales():
    assert subscales([Move(5, 7, 1, 2)], 10) == [[Move(5, 5, 1, 2)], [Move(6, 6, 1, 2)], [Move(7, 7, 1, 2)]]
    assert subscales([], 10) == []


@pytest.mark.parametrize(("low", "high"), [(-1, 5), (7, 5), (5, RING)])
def test_what_is_no_range_is_given_to_nobody(low, high):
    with pytest.raises(ValueError, match="is no range of the ring"):
        OutputTable.single(1).assign(low, high, 2)
