"""What CRAA and its baselines know of a unit in a window, and keep when a window says nothing."""

from __future__ import annotations

import pytest
from window_views import run, unit

from esault.elasticity.estimators.unit_flow import BUFFER_SECONDS, KEPT, Flows


def views(end=10.0, read=1000, sent=1000, **count):
    bolt = {"arrivals": sent, "processed": sent, "emitted": 2 * sent, "busy": 1.0, **count}
    return run(
        [
            unit("read", kind="spout", end=end, arrivals=read, processed=read, emitted=read, lag_before=0, lag=0),
            unit("split", end=end, spouts=("read",), arrivals=read, processed=read, emitted=sent, busy=2.0),
            unit("count", end=end, spouts=("read",), width=2, **bolt),
        ],
        {"split": ["read"], "count": ["split"]},
    )


def test_a_flow_has_rates_and_what_one_can_do():
    flows = Flows(count_due=False, a_window_later=False).read(views())
    assert list(flows) == ["split", "count"]
    count = flows["count"]
    assert (count.arrivals, count.emitted, count.ratio, count.share) == (100.0, 200.0, 2.0, 1.0)
    assert (count.width, count.one, count.rate) == (2, 1000.0, 2000.0)
    assert (count.head, count.senders, count.sourced) == (False, ("split",), 0.0)
    split = flows["split"]
    assert (split.head, split.senders, split.sourced, split.rate) == (True, (), 100.0, 500.0)


def test_a_window_in_which_nothing_was_processed_leaves_what_is_known():
    flows = Flows(count_due=False)
    assert flows.read(views(processed=0, busy=0.0))["count"].one is None
    assert flows.read(views(processed=0, busy=0.0))["count"].rate == 0.0
    assert flows.read(views())["count"].one == 1000.0
    assert flows.read(views(processed=0, busy=0.0, emitted=0))["count"].one == 1000.0


def test_ratios_follow_what_came_of_late():
    flows = Flows(count_due=False, a_window_later=False)
    flows.read(views())
    later = flows.read(views(emitted=0))["count"]
    assert later.ratio == pytest.approx(2000 * KEPT / (1000 * KEPT + 1000))
    assert flows.read(views(arrivals=500))["count"].share == pytest.approx(
        (1000 * KEPT**2 + 1000 * KEPT + 500) / (1000 * KEPT**2 + 1000 * KEPT + 1000)
    )


def test_what_is_emitted_in_a_window_comes_in_the_next():
    flows = Flows(count_due=False)
    assert flows.read(views(sent=1000, arrivals=0))["count"].share == 1.0  # nothing is known of what was sent before
    assert flows.read(views(sent=2000, arrivals=500))["count"].share == 0.5


@pytest.mark.parametrize(("default", "size"), [(0.0, BUFFER_SECONDS * 1000.0), (300.0, 300.0)])
def test_a_buffer_that_has_no_bound_is_as_large_as_waiting_may_be_long(default, size):
    assert Flows(default, count_due=False).read(views())["count"].size == size


def test_what_is_due_at_the_source_counts_as_come_at_the_heads_where_that_is_asked_for():
    view = run(
        [
            unit(
                "read",
                kind="spout",
                arrivals=1000,
                processed=1000,
                emitted=1000,
                lag_before=0,
                lag=500,
                backpressured=0.9,
            ),
            unit("split", spouts=("read",), arrivals=1000, processed=1000, emitted=1000, busy=10.0),
        ],
        {"split": ["read"]},
    )
    assert Flows(count_due=False).read(view)["split"].arrivals == 100.0
    due = Flows().read(view)["split"]
    assert due.arrivals == due.sourced == 150.0
    assert due.waiting == 500.0


def test_there_is_no_flow_before_all_have_a_window():
    from dataclasses import replace

    view = views()
    units = {**view.units, "count": replace(view.units["count"], window=None)}
    assert Flows().read(replace(view, units=units)) == {}


@pytest.mark.parametrize(
    ("change", "slots", "within"), [(5, 9, 5), (5, 2, 2), (50, 50, 22), (-1, 0, -1), (-9, 0, -1), (3, 0, 0)]
)
def test_a_change_is_cut_to_limits_and_slots(change, slots, within):
    flow = Flows(count_due=False).read(views())["count"]
    assert flow.within(change, slots) == within
