"""How long units were not idle."""

from __future__ import annotations

import pytest
from run_views import run

from esault.elasticity.estimators.useful_time import UsefulTime


def unit(busy, processed=1000.0, before=0.0, backlogs=(0, 0), width=2, changed_at=None):
    """10 s of two sub-units."""
    figures = {
        "changed_at": changed_at,
        "width": width,
        "busy": busy,
        "processed": processed,
        "waiting_before": before,
        "waiting": sum(backlogs),
        "samples": [{"backlog": b} for b in backlogs],
    }
    return run(10.0, {"src": {}, "work": figures}, {"work": ("src",)}).units["work"]


def test_without_waiting_it_is_the_time_of_processing():
    assert UsefulTime().share(unit(16.0)) == 0.8


def test_who_was_never_idle_was_useful_all_the_time_and_that_is_remembered():
    useful = UsefulTime()
    assert useful.share(unit(16.0, before=100.0, backlogs=(50, 50))) == 1.0
    assert useful.overhead("work") == 1.25
    assert useful.share(unit(8.0)) == pytest.approx(0.5)
    assert useful.share(unit(19.0)) == 1.0


def test_a_window_with_a_change_teaches_nothing():
    useful = UsefulTime()
    assert useful.share(unit(16.0, before=100.0, backlogs=(50, 50), changed_at=3.0)) == 1.0
    assert useful.overhead("work") == 1.0


@pytest.mark.parametrize(
    ("before", "backlogs"),
    [(99.0, (500, 500)), (500.0, (500, 49)), (0.0, (500, 500)), (500.0, (0, 0))],
)
def test_waiting_at_one_end_or_before_one_sub_unit_is_not_enough(before, backlogs):
    assert UsefulTime().share(unit(16.0, before=before, backlogs=backlogs)) == 0.8


def test_what_holds_a_unit_up_is_no_overhead():
    assert UsefulTime().share(unit(9.0, before=500.0, backlogs=(500, 500))) == 0.45
    assert UsefulTime().share(unit(10.0, before=500.0, backlogs=(500, 500))) == 1.0


def test_nothing_done_is_no_time():
    assert UsefulTime().share(unit(0.0, processed=0.0, before=500.0, backlogs=(500, 500))) == 0.0
