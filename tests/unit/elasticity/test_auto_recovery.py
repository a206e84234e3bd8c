"""`auto` does not take a recovery for a want of work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_views import run, widths

from esault.elasticity.estimators.idle_times import IdleTimes
from esault.elasticity.policies.auto import RECOVERY, Auto

PERIOD, SERVICE, WIDTH, RATE = 0.25, 0.01, 6, 460.0
DEATH, STALLED = 20.0, 2.0


def wishes(dies_in, recovers=True, end=30.0):
    """What `auto` wants of a unit that is needed as it is and gets nothing for a while; `dies_in`: a unit, or None."""
    policy, found = Auto(change_cost=1.0), []
    for look in range(1, int(end / PERIOD)):
        now = look * PERIOD
        stalled = DEATH < now <= DEATH + STALLED or (now > DEATH and not recovers)
        rate = 0.0 if stalled else RATE
        figures = {"arrivals": rate, "emitted": rate, "processed": rate, "rates": True}
        died = {dies_in: {"died_at": DEATH}} if dies_in is not None and now > DEATH else {}
        units = {
            "load": {**figures, "lag": 0, "lag_before": 0, **died.get("load", {})},
            "count": {**figures, "busy": rate * SERVICE, "width": WIDTH, **died.get("count", {})},
        }
        found += [(now, n) for n in widths(policy.decide(run(now, units, {"count": ("load",)}, PERIOD))).values()]
    return found


@pytest.mark.parametrize("dies_in", ["count", "load"])
def test_what_stands_still_after_a_death_is_needed_again(dies_in):
    assert any(n < WIDTH and now < DEATH + RECOVERY for now, n in wishes(None)), "without a death it would have shrunk"
    assert wishes(dies_in) == []


def test_what_stays_idle_after_a_death_is_given_back_later():
    found = wishes("count", recovers=False, end=60.0)
    assert found
    assert found[0][0] >= DEATH + RECOVERY
    assert found[0][1] < WIDTH


@given(st.lists(st.integers(1, 6), max_size=30))
def test_a_time_of_which_nothing_is_known_teaches_nothing(counts):
    idle, other = IdleTimes(5.0), IdleTimes(5.0)
    now = 0.0
    for count in counts:
        idle.needed(count, 6, now)
        other.needed(count, 6, now)
        now += 0.5
    idle.unknown(6, now)
    assert all(idle.idle(rank, now) == 0.0 for rank in range(1, 7))
    idle.needed(6, 6, now)
    assert [idle.patience(rank) for rank in range(1, 7)] == [other.patience(rank) for rank in range(1, 7)]
