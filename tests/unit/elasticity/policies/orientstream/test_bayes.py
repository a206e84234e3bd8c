"""Naive Bayes for a number, by vectors that a hand can reckon."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.policies.orientstream.bayes import NaiveBayes


def learnt(*samples, **options):
    made = NaiveBayes(**options)
    for x, y in samples:
        made.learn({"x": x}, y)
    return made


def test_before_a_bin_has_two_samples_the_mean_is_foretold():
    assert NaiveBayes().predict({"x": 1.0}) == 0.0
    made = learnt((1.0, 0.0), (2.0, 10.0), (3.0, 5.0), bins=3, low=0.0, high=12.0)
    assert made.predict({"x": 1.0}) == 5.0


def test_bins_count_by_prior_times_likelihood():
    samples = [(0.0, 1.0), (2.0, 3.0), (0.0, 2.0), (9.0, 11.0), (11.0, 13.0)]
    made = learnt(*samples, bins=2, low=0.0, high=14.0)
    x = 6.0

    def share(xs, n):
        mean = sum(xs) / len(xs)
        variance = sum((each - mean) ** 2 for each in xs) / (len(xs) - 1)
        return n / 5 * math.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)

    low, high = share([0.0, 2.0, 0.0], 3), share([9.0, 11.0], 2)
    assert made.predict({"x": x}) == pytest.approx((2.0 * low + 12.0 * high) / (low + high))
    assert made.predict({"x": 1.0}) == pytest.approx(2.0, abs=0.01)
    assert made.predict({"x": 10.0}) == pytest.approx(12.0, abs=0.01)


def test_a_feature_that_never_changes_is_no_division_by_zero():
    made = learnt((5.0, 1.0), (5.0, 1.0), (5.0, 9.0), (5.0, 9.0), bins=2, low=0.0, high=10.0)
    assert made.predict({"x": 5.0}) == pytest.approx(5.0)


def test_what_lies_outside_a_given_range_goes_to_the_outermost_bin():
    made = learnt((0.0, -50.0), (0.1, -50.0), (9.0, 80.0), (9.1, 80.0), bins=2, low=0.0, high=10.0)
    assert made.predict({"x": 0.0}) == pytest.approx(-50.0)
    assert made.predict({"x": 9.0}) == pytest.approx(80.0)


def test_without_a_range_bins_are_made_anew_when_the_target_goes_further():
    made = learnt(*((float(i), float(i)) for i in range(40)), bins=4)
    assert (made._low, made._high) == (pytest.approx(-0.1 * 39, abs=4), pytest.approx(39, abs=4.5))
    assert sum(each.count for each in made._bins) == made._count == 40
    assert made.predict({"x": 2.0}) < 12 < 28 < made.predict({"x": 38.0})


@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=1, max_size=30), st.booleans())
def test_what_is_foretold_is_within_what_was_seen(samples, fixed):
    options = {"low": -100.0, "high": 100.0} if fixed else {}
    made = learnt(*samples, **options)
    targets = [y for _, y in samples]
    for x in (-100.0, 0.0, samples[0][0]):
        assert min(targets) - 1e-6 <= made.predict({"x": x}) <= max(targets) + 1e-6
