from __future__ import annotations

import pytest


@pytest.mark.parametrize("limit", [3.0, 97.0, 130.0, 350.0])
def test_bisection_ends_just_below_what_is_not_sustained(limit):
    from bench.kit.bisection import bisect

    asked = []

    def sustains(rate):
        asked.append(rate)
        return rate <= limit

    found = bisect(sustains, 0.0, 100.0)
    assert found <= limit
    assert found >= min(0.94 * limit, limit - 0.05 * 100)
    assert len(asked) < 12


def test_a_rate_that_never_fails_is_not_sought_for_ever():
    from bench.kit.bisection import bisect

    assert bisect(lambda rate: True, 0.0, 100.0) == 400.0


def test_a_rate_is_sustained_if_the_last_tuple_is_done_soon_after_it_was_due():
    from bench.kit.bisection import Trials

    late = 0.0
    run = lambda tuples, rate: {"seconds": (tuples - 1) / rate + late, "latency_ms": {"p99": 1.0}}
    trials = Trials(run, seconds=10.0, most=5000)
    found = []
    for late in (0.2, 0.3, 0.6):
        found.append((trials.sustains(500.0), trials.sustains(1000.0)))  # of 10 s; of 5 s, since there are but 5000
    assert found == [(True, True), (True, False), (False, False)]
    assert [trial["tuples"] for trial in trials.made[:2]] == [5000, 5000]
    late = 3.0
    assert Trials(run, seconds=10.0, share=0.25, spare=1.0).sustains(100.0)
