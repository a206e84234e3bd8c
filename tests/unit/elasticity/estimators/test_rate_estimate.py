"""An estimate that is precise while the rate is steady and quick when it is not."""

from __future__ import annotations

import random

from esault.elasticity.estimators.rate_estimate import RateEstimate


def bursts(order, rate, seconds, size=64):
    """Tuples a second in a window of random bursts."""
    count, t = 0, 0.0
    while True:
        t += order.expovariate(rate / size)
        if t > seconds:
            return count * size / seconds
        count += 1


def test_a_steady_rate_is_averaged_over_the_longest_time():
    order = random.Random(1)
    estimate = RateEstimate(10.0)
    means = []
    for i in range(200):
        estimate.add(bursts(order, 2000, 0.5), 0.5)
        if i > 40:
            means.append(estimate.mean)
    assert 1900 < sum(means) / len(means) < 2100
    assert sum(abs(m - 2000) > 400 for m in means) < 0.1 * len(means)
    assert 30 < estimate.dispersion < 130  # the size of the bursts, learnt


def test_a_jump_is_seen_within_a_second():
    order = random.Random(2)
    estimate = RateEstimate(10.0)
    for _ in range(40):
        estimate.add(bursts(order, 250, 0.5), 0.5)
    estimate.add(2000, 0.5)
    estimate.add(2000, 0.5)
    assert estimate.mean > 1800
    assert estimate.seconds <= 1.0


def test_a_rate_without_chance_has_no_error():
    estimate = RateEstimate(10.0)
    for _ in range(200):
        estimate.add(500.0, 0.5)
    assert estimate.error < 10
    estimate.add(600.0, 0.5)
    estimate.add(600.0, 0.5)
    assert estimate.mean == 600.0


def test_recent_takes_the_newest_windows():
    estimate = RateEstimate(10.0)
    for rate in (100.0, 100.0, 110.0, 120.0):
        estimate.add(rate, 0.5)
    assert estimate.recent(0.5)[0] == 120.0
    assert estimate.recent(1.0)[0] == 115.0
    assert RateEstimate().recent(1.0) == (0.0, 0.0)
