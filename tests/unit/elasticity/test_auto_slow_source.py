"""`auto` does not grow a bolt for what a source cannot read any faster."""

from __future__ import annotations

import pytest
from run_views import run, widths

from esault.elasticity.policies.auto import Auto

PERIOD, SERVICE, RATE = 0.25, 0.0002, 1000.0


def wishes(backpressured, due):
    """What `auto` wants of a bolt that one sub-unit is enough for, behind a backlog of 200 000; `due`: tuples a second that join it."""
    policy, found, lag = Auto(change_cost=1.0), [], 200_000.0
    for look in range(1, int(30.0 / PERIOD)):
        before, lag = lag, lag + (due - RATE) * PERIOD
        figures = {"arrivals": RATE, "emitted": RATE, "processed": RATE, "rates": True}
        units = {
            "load": {**figures, "lag": lag, "lag_before": before, "backpressured": backpressured},
            "count": {**figures, "busy": RATE * SERVICE},
        }
        found += widths(policy.decide(run(look * PERIOD, units, {"count": ("load",)}, PERIOD))).values()
    return found


@pytest.mark.parametrize("due", [0.0, 500.0, 4000.0])
def test_a_bolt_does_not_grow_behind_a_source_that_nothing_holds_back(due):
    assert wishes(0.0, due) == []


def test_it_grows_where_the_source_is_held_back():
    assert max(wishes(0.9, 500.0)) > 1
