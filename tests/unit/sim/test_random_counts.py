"""Random numbers of arrivals: their mean, and their variance by bursts."""

from __future__ import annotations

import random
from statistics import fmean, pvariance

import pytest

from esault.sim.modelled_source import arrivals


@pytest.mark.parametrize("mean", [0.5, 5.0, 39.0, 41.0, 400.0])
@pytest.mark.parametrize("burst", [1.0, 4.0])
def test_mean_and_variance_over_mean_are_as_asked_for(mean, burst):
    order = random.Random(7)
    found = [arrivals(order, mean, burst) for _ in range(4000)]
    assert min(found) >= 0.0
    assert fmean(found) == pytest.approx(mean, rel=0.2, abs=0.1)
    assert pvariance(found) / fmean(found) == pytest.approx(burst, rel=0.2)


@pytest.mark.parametrize(("mean", "burst"), [(3.3, 0.0), (3.3, -1.0), (0.0, 2.0), (-1.0, 2.0), (0.0, 0.0)])
def test_without_bursts_it_is_the_mean_and_never_below_nothing(mean, burst):
    assert arrivals(random.Random(1), mean, burst) == max(0.0, mean)


def test_the_same_seed_gives_the_same():
    one, two = random.Random(3), random.Random(3)
    assert [arrivals(one, 9.0, 2.0) for _ in range(20)] == [arrivals(two, 9.0, 2.0) for _ in range(20)]
