"""What old owners give to new ones where keys have no owners."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from esault.routing.ring import RING
from esault.routing.table_change import dealt


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
