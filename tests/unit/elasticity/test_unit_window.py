"""What an aligned window says of its unit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.totals import Totals
from esault.elasticity.view import UnitWindow


def of_source(seconds=10.0, **fields):
    return UnitWindow(0.0, seconds, arrivals=500.0, **fields)


def test_what_a_source_offered_is_what_was_read_and_what_more_waits():
    assert of_source().offered == 50.0  # nobody knows what waits
    assert of_source(lag=1000.0).offered == 50.0
    assert of_source(lag_before=100.0, lag=1100.0).offered == 150.0
    assert of_source(lag_before=1100.0, lag=0.0).offered == 0.0  # it catches up
    assert of_source(seconds=0.0).offered == 0.0


@given(st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)), min_size=1, max_size=20))
def test_windows_in_a_row_offer_all_that_was_read_and_all_that_waits(steps):
    lag, offered, read = 0.0, 0.0, 0.0
    for due, could in steps:
        done = min(could, lag + due)
        after = lag + due - done
        window = UnitWindow(0.0, 0.5, arrivals=done, lag_before=lag, lag=after)
        assert window.offered * 0.5 == pytest.approx(due, rel=1e-6, abs=1e-6)
        offered, read, lag = offered + window.offered * 0.5, read + done, after
    assert offered == pytest.approx(read + lag, rel=1e-6, abs=1e-5)


def test_a_source_that_nothing_holds_back_offers_what_it_reads():
    for before in (2000.0, 9000.0):  # more comes, or less
        slow = of_source(lag_before=before, lag=3000.0, backpressured=0.01)
        assert (slow.own_pace.offered, slow.own_pace.lag) == (50.0, None)
    held_back, burst = of_source(lag=3000.0, backpressured=0.1), of_source(lag=1000.0)
    for other in (held_back, burst, of_source(lag=0.0), of_source()):
        assert other.own_pace is other


def test_it_is_blind_where_it_was_held_back_and_nobody_knows_what_is_due():
    assert of_source(backpressured=0.9).blind
    assert not of_source(backpressured=0.4).blind
    assert not of_source(backpressured=0.9, lag_before=0.0, lag=10.0).blind


def test_what_a_tuple_takes_is_counted_by_those_that_are_over():
    begins = Totals(processed=0, busy=0.0)
    ramp = Totals(processed=20, busy=4.0, open_busy=3.6)
    ends = Totals(processed=200, busy=4.0, open_busy=0.0)
    both = ramp.plus(ramp)
    assert ramp.since(begins, 0.0, 1.0).service == pytest.approx(0.02)
    assert ramp.since(begins, 0.0, 1.0).busy == 4.0
    assert ends.since(ramp, 1.0, 2.0).service == pytest.approx(0.02)
    assert both.since(begins, 0.0, 1.0).ended == pytest.approx(0.8)
