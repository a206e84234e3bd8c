"""The filter of one rate."""

from __future__ import annotations

import pytest

from esault.elasticity.estimators.kalman_filter import KalmanFilter, head_filter


def test_before_anything_was_measured_it_foretells_nothing():
    assert head_filter("trend").forecast(2) == 0.0


def test_a_steady_rate_and_a_steady_slope_are_found():
    one = head_filter("trend")
    for k in range(50):
        one.update(100 + 20 * k)
    assert one.forecast(1) == pytest.approx(100 + 20 * 50, rel=0.01)
    one = head_filter("walk")
    for _ in range(50):
        one.update(300)
    assert one.forecast(2) == pytest.approx(300)


def test_only_the_ratio_of_the_noises_matters():
    one, other = KalmanFilter(1e5, 1e5, True), KalmanFilter(1.0, 1.0, True)
    for rate in (10, 50, 20, 80):
        one.update(rate)
        other.update(rate)
    assert one.forecast(2) == pytest.approx(other.forecast(2))


def test_never_below_0():
    one = head_filter("trend")
    for rate in (5000, 2000, 100, 0):
        one.update(rate)
    assert one.forecast(2) == 0.0
