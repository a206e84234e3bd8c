"""`auto` in the first moments of a run: what is full beyond doubt grows before a window is over."""

from __future__ import annotations

from dataclasses import replace

import pytest
from run_views import run, widths

from esault.elasticity.first_reports import LENGTH, FirstWindow
from esault.elasticity.policies.auto import Auto
from esault.elasticity.view import UnitWindow
from esault.messages.probe import HostUsage

SENDERS = {"work": ("lines",)}


def looked(least_waiting=8.0, needs=0.1, busy=1.0, processed=400, held=0.9, width=4, free=12, cpu=0.2, **said):
    """What the unit is wanted to grow to; `needs` and `busy`: shares of the time of each of its sub-units."""
    view = run(10.0, {"lines": {}, "work": {"width": width, **said}}, SENDERS, free=free)
    work = replace(
        view.units["work"],
        spouts=("lines",),
        samples=tuple(replace(each, cpu=needs, busy=busy) for each in view.units["work"].samples),
    )
    view = replace(view, units={**view.units, "work": work}, hosts=(HostUsage("h", 2, cpu, 1, 2),))
    bolt = UnitWindow(10.0 - LENGTH, 10.0, processed=processed, busy=busy * width * LENGTH, width=width)
    spout = UnitWindow(10.0 - LENGTH, 10.0, arrivals=500.0, backpressured=held)
    firsts = {
        "lines": FirstWindow(spout, 0.1, 0.0),
        "work": FirstWindow(bolt, None if needs is None else needs * width, least_waiting),
    }
    return widths(Auto().decide_first(view, firsts)).get("work", width)


def test_what_waits_for_something_else_than_the_processor_is_made_four_times_as_large():
    assert looked() == 16
    assert looked(width=1, least_waiting=3.0) == 4


def test_no_further_than_slots_and_its_own_limit_go():
    assert looked(free=5) == 9
    assert looked(most=6) == 6


@pytest.mark.parametrize(
    "why_not",
    [
        {"held": 0.3},
        {"least_waiting": 3.0},
        {"busy": 0.6},
        {"processed": 12},
        {"changed_at": 9.9},
        {"changing": True},
        {"died_at": 9.9},
    ],
    ids=str,
)
def test_nothing_grows_where_there_is_a_doubt(why_not):
    assert looked(**why_not) == 4


def test_heavy_work_of_the_processor_is_doubled_where_a_core_is_free():
    heavy = {"width": 1, "needs": 1.0, "busy": 0.6, "processed": 500}
    assert looked(**heavy) == 2
    # Rows are large: none waits where a report is made.
    assert looked(**heavy, least_waiting=0.0) == 2
    # Something beside its tuples takes the processor.
    assert looked(**{**heavy, "busy": 0.3}) == 1
    # What tuples take in all is too little to gain by a core that may be busy.
    assert looked(**{**heavy, "processed": 50_000}) == 1
    # The run's own processes take both cores.
    assert looked(**{**heavy, "width": 2}) == 2


def test_where_it_is_unknown_what_a_process_needs_nothing_is_taken_for_waiting():
    assert looked(needs=None, width=1, least_waiting=3.0) in (1, 2)


def test_a_budget_is_not_divided_so_soon():
    view = run(10.0, {"lines": {}, "work": {}}, SENDERS)
    assert list(Auto().decide_first(replace(view, budget=5), {})) == []


def test_a_growth_that_brought_nothing_is_known_as_such_behind_the_first_moments():
    policy = Auto()
    view = run(10.0, {"lines": {}, "work": {"width": 4}}, SENDERS, free=12)
    view = replace(view, units={**view.units, "work": replace(view.units["work"], spouts=("lines",))})
    bolt = UnitWindow(10.0 - LENGTH, 10.0, processed=400, busy=4 * LENGTH, width=4)
    spout = UnitWindow(10.0 - LENGTH, 10.0, arrivals=500.0, backpressured=0.9)
    firsts = {"lines": FirstWindow(spout, 0.1, 0.0), "work": FirstWindow(bolt, 0.1, 8.0)}
    assert widths(policy.decide_first(view, firsts)) == {"work": 16}
    gain = policy._units["work"].gain
    gain.add(True, 1000.0, 0.25, 16)  # 4 000 tuples/s, as before
    assert "something else limits" in gain.why_not(16, 11.0)
