"""What each unit may let tuples wait, so that a latency objective is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from run_views import run

from esault.elasticity.estimators.allowance import LOOSEST, STEP, TIGHTEST, Allowance
from esault.elasticity.objective import LatencyObjective, ObjectiveStatus

#: src -> split -> count -> store, and split -> alarm
SENDERS = {"split": ("src",), "count": ("split",), "store": ("count",), "alarm": ("split",)}


def view(now, *objectives, burning=None, free=5, **units):
    figures = {"src": {}, **{name: {"width": 1, **units.get(name, {})} for name in SENDERS}}
    statuses = tuple(ObjectiveStatus(LatencyObjective.parse(text), recent_burn_rate=burning) for text in objectives)
    return replace(run(now, figures, SENDERS), objectives=statuses, free_slots=free)


def test_without_an_objective_each_waits_as_the_policy_says():
    allowance = Allowance(0.1)
    allowance.observe(view(0.0), {})
    assert allowance.wait("count") == 0.1
    assert not allowance


def test_it_is_divided_among_the_units_on_the_longest_way():
    allowance = Allowance(0.1)
    allowance.observe(view(0.0, "p99 < 100 ms"), {"split": 0.01, "count": 0.02, "store": 0.01, "alarm": 0.04})
    # split, count, store take 40 ms; split and alarm 50 ms
    assert [allowance.wait("count"), allowance.wait("store")] == pytest.approx([0.06 / 3] * 2)
    assert allowance.wait("alarm") == pytest.approx(0.05 / 2)
    assert allowance.wait("split") == pytest.approx(0.05 / 3)  # on both: the most units, the slowest


def test_the_strictest_objective_counts_and_a_little_is_always_left():
    allowance = Allowance(0.1)
    allowance.observe(view(0.0, "p99 < 3 s", "count=p99 < 50 ms"), {"count": 0.2})
    assert allowance.wait("count") == pytest.approx(0.05 * 0.05)
    assert allowance.wait("store") == pytest.approx(2.8 / 3)


def after(burning, looks, **more):
    allowance = Allowance(0.1)
    for look in range(looks):
        allowance.observe(view(look * STEP, "count=p99 < 1 s", burning=burning, **more), {})
    return allowance


def test_it_follows_the_burn_rate_step_by_step_within_bounds():
    assert after(3.0, 2).wait("count") == pytest.approx(0.7)
    assert after(3.0, 3).wait("count") == pytest.approx(0.49)
    assert after(3.0, 60).wait("count") == pytest.approx(TIGHTEST)
    assert after(0.5, 60).wait("count") == 1.0
    assert after(0.1, 2).wait("count") == pytest.approx(1.15)
    assert after(0.1, 60).wait("count") == pytest.approx(LOOSEST)
    assert after(0.1, 60).looseness == 1.0
    assert after(3.0, 60).looseness == 0.0
    assert after(None, 60).wait("count") == 1.0


def test_what_a_change_made_slow_and_a_want_of_slots_make_it_no_stricter():
    assert after(3.0, 60, free=0).wait("count") == 1.0
    assert after(3.0, 60, split={"changing": True}).wait("count") == 1.0


def test_one_late_burst_after_a_cheap_time_begins_from_the_objective():
    allowance = after(0.1, 60)
    allowance.observe(view(61 * STEP, "count=p99 < 1 s", burning=2.0), {})
    assert allowance.wait("count") == pytest.approx(0.7)
