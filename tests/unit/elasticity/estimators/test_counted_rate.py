"""An estimate that knows a climb from chance, and few bursts from a change."""

from __future__ import annotations

import random

import depth
import pytest

from esault.elasticity.estimators.counted_rate import CountedRate
from esault.elasticity.estimators.rate_estimate import RateEstimate

PERIOD = 0.25


def fed(made, rate, seconds, size=1.0, seed=1):
    """Told of bursts of `size` at random times, `rate(t)` tuples a second; how often it forgot what was before."""
    order = random.Random(seed)
    forgot = 0
    for i in range(round(seconds / PERIOD)):
        mean, count, t = rate(i * PERIOD) * PERIOD / size, 0, 0.0
        while True:
            t += order.expovariate(mean) if mean > 0 else 2.0
            if t > 1:
                break
            count += 1
        before = made.seconds
        made.add(count * size / PERIOD, PERIOD)
        forgot += made.seconds < before - PERIOD
    return forgot


def climb(t):
    return 1000.0 + 50.0 * t


def test_the_size_of_bursts_is_learnt():
    for size, rate in ((1.0, 2000.0), (64.0, 2000.0), (64.0, 30.0)):  # the last: one window of eight has a burst
        made = CountedRate()
        fed(made, lambda t, rate=rate: rate, 240, size)
        assert made.dispersion == pytest.approx(size, rel=0.5)


def test_a_climb_is_no_chance():
    made, old = CountedRate(), RateEstimate()
    fed(made, climb, 60)
    fed(old, climb, 60)
    assert made.dispersion < 2
    assert old.dispersion > 1.5 * made.dispersion
    assert made.mean == pytest.approx(climb(60), rel=0.05)


@pytest.mark.parametrize("rate", depth.chosen([30.0, 400.0, 2000.0], [30.0]))
def test_steady_bursts_are_seldom_taken_for_a_change(rate):
    news = sum(fed(CountedRate(), lambda t: rate, 240, 64.0, seed) for seed in range(5))
    olds = sum(fed(RateEstimate(), lambda t: rate, 240, 64.0, seed) for seed in range(5))
    assert news <= 5  # in 20 minutes
    assert news < olds / 3


@pytest.mark.parametrize("after", [200.0, 800.0])
def test_a_jump_is_seen_within_a_second(after):
    made = CountedRate()
    fed(made, lambda t: 400.0 if t < 20 else after, 21)
    assert made.mean == pytest.approx(after, rel=0.2)
    assert made.seconds <= 1.25


def test_nothing_at_all_is_a_rate_too():
    made = CountedRate()
    fed(made, lambda t: 0.0, 20)
    assert (made.mean, made.error) == (0.0, 0.0)
    fed(made, lambda t: 500.0, 2)
    assert made.mean == pytest.approx(500, rel=0.2)
