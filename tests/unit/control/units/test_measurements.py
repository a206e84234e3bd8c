"""Counts of the living and the dead."""

from __future__ import annotations

from esault.control.units.measurements import Measurements
from esault.histogram import Histogram
from esault.messages.status import Status, SubUnitCounts


def status(incarnation, seen, elements=0, backlog=0, seconds=0.001):
    times = Histogram()
    times.record(seconds, seen)
    return Status(
        incarnation,
        0.0,
        SubUnitCounts(tuples_in=seen, elements=elements, backlog=backlog),
        {"latency": times.snapshot()},
    )


def test_counts_of_the_dead_stay_and_what_they_held_is_lost():
    measured = Measurements()
    measured.update(status(1, 10, elements=4, backlog=7))
    measured.update(status(2, 20, elements=5, backlog=1))
    measured.died(1)
    assert measured.counts.tuples_in == 30
    assert measured.counts.elements == 5
    assert measured.counts.backlog == 1
    assert measured.counts.state_lost == 4
    assert len(measured.durations.latency) == 30


def test_one_that_left_in_order_lost_nothing():
    measured = Measurements()
    measured.update(status(1, 10, elements=4))
    measured.left(status(1, 12))
    assert measured.counts.tuples_in == 12
    assert measured.counts.state_lost == 0


def test_a_report_that_comes_after_the_death_is_not_counted_twice():
    measured = Measurements()
    measured.update(status(1, 10))
    measured.died(1)
    measured.update(status(1, 11))
    assert measured.counts.tuples_in == 10


def test_progress_is_known_if_all_know_it():
    measured = Measurements()
    measured.update(Status(1, 0.0, SubUnitCounts(), progress=(1.0, 4.0)))
    measured.update(Status(2, 0.0, SubUnitCounts(), progress=(2.0, 4.0)))
    assert measured.progress == (3.0, 8.0)
    measured.update(Status(2, 1.0, SubUnitCounts(), progress=None))
    assert measured.progress is None
