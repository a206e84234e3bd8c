"""How much more came than had been foretold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.estimators.surprises import ENOUGH, KEPT, LEAD, Surprises

PERIOD = 0.25


def lived(rate, seconds, expected=1000.0, chance=0.0):
    """Told `rate(t)`, of which `chance` is none that counts, after `expected` was foretold each time."""
    seen = Surprises()
    for i in range(round(seconds / PERIOD)):
        end = (i + 1) * PERIOD
        seen.add(end, PERIOD, rate(i * PERIOD), chance)
        seen.foretell(end + LEAD, expected)
    return seen


def test_nothing_is_said_before_enough_was_seen():
    assert Surprises().worst is None
    assert lived(lambda t: 1000.0, ENOUGH).worst is None
    assert lived(lambda t: 1000.0, ENOUGH + 4).worst == pytest.approx(1.0)


def test_the_worst_second_is_kept_for_a_minute():
    def more_at_30(t):
        return 1300.0 if 30 <= t < 31 else 1000.0

    assert lived(more_at_30, 40).worst == pytest.approx(1.3)
    assert lived(more_at_30, 31 + KEPT - 1).worst == pytest.approx(1.3)
    assert lived(more_at_30, 31 + KEPT + 2).worst == pytest.approx(1.0)


def test_one_window_is_mostly_chance_and_counts_as_part_of_its_second():
    assert lived(lambda t: 2000.0 if t == 30 else 1000.0, 40).worst == pytest.approx(1.25)


def test_what_chance_brings_is_no_surprise():
    def more_at_30(t):
        return 1300.0 if 30 <= t < 31 else 1000.0

    assert lived(more_at_30, 40, chance=100.0).worst == pytest.approx(1.2)
    assert lived(more_at_30, 40, chance=400.0).worst < 1.0


def test_what_is_foretold_is_compared_with_what_came_then():
    seen = Surprises()
    for i in range(200):  # it climbs by 100 a second, and that is foretold
        end = (i + 1) * PERIOD
        seen.add(end, PERIOD, 1000 + 100 * end)
        seen.foretell(end + LEAD, 1000 + 100 * (end + LEAD))
    assert seen.worst == pytest.approx(1.0)


@given(st.lists(st.floats(0, 1e5), min_size=140, max_size=160), st.floats(1, 1e5))
def test_it_is_no_less_than_the_mean_of_all_and_no_more_than_the_worst_window(rates, expected):
    seen = lived(lambda t: rates[round(t / PERIOD)], len(rates) * PERIOD, expected)
    assert seen.worst is not None
    assert seen.worst <= max(rates) / expected + 1e-9
    whole = rates[5 : 5 + (len(rates) - 5) // 4 * 4]  # the first that were foretold, in whole seconds
    assert seen.worst >= sum(whole) / len(whole) / expected - 1e-9
