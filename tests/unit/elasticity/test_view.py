"""What follows from the figures of a view."""

from __future__ import annotations

from dataclasses import replace

import pytest
from elasticity_views import sample

from esault.elasticity.view import RunView, UnitView, UnitWindow
from esault.topology.plan import UnitPlan


def window(**figures):
    return UnitWindow(10.0, 14.0, **figures)


def test_service_is_of_the_tuples_that_were_over():
    assert window(processed=8, busy=2.0).service == 0.25
    assert window(processed=8, busy=2.0, opened=1.0).service == 0.125
    assert window(processed=8, busy=2.0, opened=3.0).service == 0.0
    assert window(busy=2.0).service is None
    assert window().seconds == 4.0


@pytest.mark.parametrize(
    ("before", "lag", "offered"),
    [(None, None, 25.0), (None, 40.0, 25.0), (0.0, 40.0, 35.0), (40.0, 0.0, 15.0), (400.0, 0.0, 0.0)],
)
def test_what_a_source_offered_is_what_was_read_and_what_waits_more(before, lag, offered):
    assert window(arrivals=100, lag_before=before, lag=lag).offered == offered
    assert UnitWindow(10.0, 10.0, arrivals=100).offered == 0.0


@pytest.mark.parametrize(
    ("lag", "held", "own"), [(500.0, 0.0, True), (400.0, 0.0, False), (500.0, 0.5, False), (None, 0.0, False)]
)
def test_one_that_reads_as_fast_as_it_can_by_itself_is_not_held_to_what_is_due(lag, held, own):
    made = window(arrivals=100, lag_before=0.0, lag=lag, backpressured=held)
    assert made.own_pace == (replace(made, lag_before=None, lag=None) if own else made)


@pytest.mark.parametrize(
    ("held", "before", "lag", "blind"),
    [
        (0.9, None, None, True),
        (0.9, 1.0, None, True),
        (0.9, None, 1.0, True),
        (0.9, 1.0, 1.0, False),
        (0.5, None, None, False),
    ],
)
def test_one_that_was_held_back_and_cannot_tell_what_there_is_is_blind(held, before, lag, blind):
    assert window(backpressured=held, lag_before=before, lag=lag).blind is blind


def test_replicas_count_once():
    samples = tuple(sample(i, replica=i % 2, load_share=share) for i, share in enumerate((0.1, 0.7, None, 0.3)))
    unit = UnitView("count", UnitPlan("count", "bolt", replicas=2), samples)
    assert unit.width == 2
    assert [each.sub_unit for each in unit.first_replica.samples] == [0, 2]
    single = UnitView("count", UnitPlan("count", "bolt"), samples)
    assert single.first_replica is single
    assert RunView(1.0, 1.0, {"a": unit, "b": single}).held == 8


def test_the_heaviest_share_is_an_even_part_where_nothing_is_known():
    plan = UnitPlan("count", "bolt")
    assert UnitView("count", plan, tuple(sample(i) for i in range(4))).heaviest_share == 0.25
    assert UnitView("count", plan, (sample(1, load_share=0.3), sample(2))).heaviest_share == 0.3
    assert UnitView("count", plan).heaviest_share == 1.0
