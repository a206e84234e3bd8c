"""How long to keep a sub-unit that is not needed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.estimators.idle_times import ENOUGH, KEPT, LEAST, IdleTimes


@pytest.mark.parametrize("change", [0.1, 8.0])
def test_without_a_history_it_waits_as_long_as_a_change_costs(change):
    assert IdleTimes(change).patience(1) == max(LEAST, change)


def cost(wait, ended, change):
    return sum(seconds if seconds <= wait else wait + change for seconds in ended)


@given(st.lists(st.floats(0.1, 100), min_size=ENOUGH, max_size=30), st.floats(2, 20))
def test_with_one_no_other_wait_would_have_cost_less(ended, change):
    idle = IdleTimes(change)
    idle.recall([(1, seconds) for seconds in ended])
    wait = idle.patience(1)
    assert LEAST <= wait < 4 * change
    best = cost(wait, ended, change)
    for other in [LEAST, change, *ended]:
        if LEAST <= other < 4 * change:
            assert best <= cost(other, ended, change) + 1e-6


def test_idle_times_are_learnt_when_they_end():
    idle = IdleTimes(5.0)
    idle.needed(3, 3, 0.0)
    idle.needed(1, 3, 10.0)
    assert idle.idle(3, 10.0) == 10.0 and idle.idle(1, 10.0) == 0.0 and idle.snapshot() == [(1, 10.0)]
    idle.needed(2, 3, 30.0)
    assert idle.snapshot() == [(1, 10.0), (1, 20.0), (2, 30.0)] and idle.idle(3, 30.0) == 30.0


def test_moments_are_no_idle_times():
    idle = IdleTimes(5.0)
    for now in range(5):
        idle.needed(2, 2, float(now))
    assert idle.snapshot() == []


def test_where_it_is_unknown_nothing_is_learnt():
    idle = IdleTimes(5.0)
    idle.needed(2, 2, 0.0)
    idle.unknown(2, 50.0)
    idle.needed(2, 2, 51.0)
    assert idle.snapshot() == [] and idle.idle(9, 7.0) == 0.0


def test_ones_own_rank_and_its_neighbours_decide_where_they_are_many():
    idle = IdleTimes(10.0)
    idle.recall([(2, 5.0)] * 12 + [(9, 200.0)] * 12)
    assert idle.patience(2) == 5.0 and idle.patience(9) == LEAST


def test_what_is_remembered_is_bounded_and_the_newest():
    idle = IdleTimes(1.0)
    idle.recall([(1, float(n)) for n in range(KEPT + 5)])
    assert len(idle.snapshot()) == KEPT and idle.snapshot()[-1] == (1, KEPT + 4.0)


@pytest.mark.parametrize("said", [[1], [(1,)], [("x", 1.0)], [(1, None)], 7])
def test_another_thing_is_refused(said):
    with pytest.raises((TypeError, ValueError)):
        IdleTimes(1.0).recall(said)
