"""A queue and the servers behind it: nothing is made and nothing is lost that is not counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.sim.station import Station

steps = st.lists(
    st.tuples(st.floats(0, 100), st.floats(0, 1), st.floats(0, 50), st.sampled_from([0.0, 0.25, 1.0]), st.booleans()),
    max_size=15,
)


def total(parcels):
    return sum(amount for _, amount in parcels)


@given(steps, st.sampled_from([10.0, 1000.0, float("inf")]))
def test_what_came_is_processed_waits_or_was_dropped(steps, room):
    station, done = Station(1, 0.5), 0.0
    for now, (amount, share, seconds, moved_in, released) in enumerate(steps):
        station.moved_in = moved_in
        station.admit([(float(now), amount)], share, room)
        found = station.work(seconds)
        assert total(found) <= seconds / 0.5 + 1e-6
        done += total(found)
        if released:
            station.release()
            assert [born for born, _ in station.parcels] == sorted(born for born, _ in station.parcels)
        assert station.waiting <= room + 1e-6
        assert station.waiting == pytest.approx(total(station.parcels) + total(station.held), abs=1e-6)
    assert station.arrived == pytest.approx(done + station.waiting + station.dropped, abs=1e-6)
    assert station.processed == pytest.approx(done, abs=1e-6)
    assert station.busy == pytest.approx(0.5 * done, abs=1e-6)


def test_the_oldest_are_processed_first():
    station = Station(1, 1.0)
    station.admit([(0.0, 2.0), (1.0, 2.0)], 1.0, float("inf"))
    assert station.work(3.0) == [(0.0, 2.0), (1.0, 1.0)]
    assert station.work(9.0) == [(1.0, 1.0)] and station.work(9.0) == []


def test_no_more_are_processed_than_allowed():
    station = Station(1, 1.0)
    station.admit([(0.0, 5.0)], 1.0, float("inf"))
    assert station.work(4.0, most=1.5) == [(0.0, 1.5)] and station.busy == 1.5


def test_what_is_held_is_processed_only_when_it_is_released():
    station = Station(1, 1.0)
    station.moved_in = 1.0
    station.admit([(3.0, 4.0)], 1.0, float("inf"))
    assert total(station.work(10.0)) == 0.0 and station.waiting == 4.0
    station.release()
    assert station.moved_in == 0.0 and station.work(10.0)[-1] == (3.0, 4.0)
