"""`auto` behind a bolt that emits by itself, at ticks or by timers: what it emits comes to the units behind all the same."""

from __future__ import annotations

import pytest
from run_views import run, widths

from esault.elasticity.policies.auto import Auto


def wishes(of_its_own, came=0.0, every=20, seconds=40.0):
    """What `auto` wants of a unit of 10 ms behind one that emits so many tuples a second of its own.

    And two for each that it gets: so many in one window of `every`.
    """
    policy, found = Auto(), []
    for look in range(1, round(4 * seconds)):
        got = came if look % every == 0 else 0.0
        emitted = of_its_own + 8.0 * got
        tick = {"arrivals": 4.0 * got, "processed": 4.0 * got, "emitted": emitted, "busy": 0.001 * got, "rates": True}
        work = {"arrivals": emitted, "processed": min(emitted, 100.0), "busy": min(1.0, 0.01 * emitted), "rates": True}
        units = {
            "in": {"arrivals": 4.0 * got, "emitted": 4.0 * got, "rates": True, "lag": 0.0, "lag_before": 0.0},
            "tick": tick,
            "work": {**work, "most": 16},
        }
        found.append(widths(policy.decide(run(0.25 * look, units, {"tick": ("in",), "work": ("tick",)}, 0.25))))
    return [each["work"] for each in found if "work" in each], policy


@pytest.mark.parametrize("came", [0.0, 1.0])
def test_the_unit_behind_is_sized_for_what_is_emitted_at_ticks(came):
    wanted, policy = wishes(300.0, came)
    assert wanted[0] >= 4 and wanted[-1] in (4, 5), "work for 3"
    assert policy._units["tick"].emits(0.0) == pytest.approx(300.0, rel=0.05)


def test_one_tuple_in_an_hour_does_not_bring_forth_all_that_was_emitted_in_it():
    _, policy = wishes(300.0, 20.0, every=70)
    assert policy._units["tick"].cost.selectivity == pytest.approx(2.0, rel=0.2)


def test_where_it_emits_nothing_of_its_own_nothing_is_added():
    wanted, policy = wishes(0.0, 20.0, every=1)
    assert policy._units["tick"].emits(40.0) == pytest.approx(80.0, rel=0.01)
    assert wanted[-1] <= 2, "work for 0.8"
