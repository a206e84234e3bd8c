"""Counts by one instant, and the window between two of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.totals import Totals

counts = st.integers(0, 1000).map(float)
totals = st.builds(
    Totals, counts, counts, counts, counts, counts, counts, st.none() | counts, counts, st.integers(1, 9), counts
)


@given(totals, totals, totals)
def test_sums_do_not_depend_on_their_order(a, b, c):
    assert a.plus(b) == b.plus(a) and a.plus(b).plus(c) == a.plus(b.plus(c))


@given(totals)
def test_nothing_adds_nothing(a):
    assert a.plus(Totals(width=0)) == a


@given(totals, totals, st.floats(-5, 5))
def test_nothing_is_counted_below_zero_and_shares_are_shares(before, after, seconds):
    window = after.since(before, 10.0, 10.0 + seconds)
    assert min(window.arrivals, window.processed, window.emitted, window.dropped, window.busy) >= 0.0
    assert 0.0 <= window.backpressured <= 1.0
    assert (window.waiting_before, window.waiting, window.lag_before, window.lag) == (
        before.waiting,
        after.waiting,
        before.lag,
        after.lag,
    )


def test_a_window_is_the_difference():
    window = Totals(10, 8, 6, 1, 4.0, 1, None, 3.0, 2).since(Totals(4, 4, 4, 0, 1.0, 0, 7.0, 1.0, 2), 0.0, 4.0)
    assert (window.arrivals, window.processed, window.emitted, window.dropped, window.busy) == (6, 4, 2, 1, 3.0)
    assert window.backpressured == 0.25 and window.width == 2
