"""What a source is foretold to offer."""

from __future__ import annotations

import math
import random

import pytest

from esault.elasticity.estimators.flow_forecast import STEP
from esault.elasticity.estimators.source_forecast import AHEAD, SourceForecast
from esault.elasticity.view import UnitWindow

PERIOD = 0.25


def seen(rate, seconds, burst=1.0, seed=1, **parameters):
    """A source that has offered `rate` for so long, with chance: variance over mean is `burst`."""
    made = SourceForecast(10.0, PERIOD, **parameters)
    order = random.Random(seed)
    for i in range(round(seconds / PERIOD)):
        mean = rate(i * PERIOD) * PERIOD
        count = max(0.0, order.gauss(mean, math.sqrt(burst * mean)))
        made.add(UnitWindow(i * PERIOD, (i + 1) * PERIOD, arrivals=count))
    return made


def test_a_steady_rate_goes_on():
    source = seen(lambda t: 1000.0, 20)
    most, steps = source.most, source.steps
    assert len(steps) == AHEAD / STEP
    assert steps == [pytest.approx(1000, rel=0.03)] * len(steps)
    assert 1000 * 0.98 < most < 1000 * 1.05
    assert not source.blind


def test_a_jump_is_what_is_there():
    source = seen(lambda t: 100.0 if t < 10 else 800.0, 10.25)
    newest, before = source.newest
    assert newest > 6 * before
    source.add(UnitWindow(10.25, 10.5, arrivals=200.0))
    assert source.newest == (800.0, newest)
    assert source.steps[0] == pytest.approx(800, rel=0.1)


def test_a_climb_is_foreseen_for_a_second_and_a_half():
    source = seen(lambda t: 1000.0 + 1000.0 * max(0.0, t - 10), 12, burst=0.0)
    steps = source.steps
    assert steps[0] > source.rate.mean
    assert steps[5] - steps[0] == pytest.approx(1.25 * 1000, rel=0.35)
    assert steps[6:] == [steps[5]] * (len(steps) - 6)


def test_a_jump_that_falls_on_two_windows_is_no_climb():
    source = seen(lambda t: 300.0, 20)
    for i, rate in enumerate((1500.0, 2900.0, 3160.0)):
        source.add(UnitWindow(20 + i * PERIOD, 20 + (i + 1) * PERIOD, arrivals=rate * PERIOD))
    assert max(source.steps) < 3300


def test_chance_is_no_climb():
    for seed in range(5):
        source = seen(lambda t: 1000.0, 30, burst=32.0, seed=seed)
        steps = source.steps
        assert steps == [steps[0]] * len(steps)


def test_a_rhythm_is_foretold_unless_it_is_not_to_be():
    def square(t):
        return 1000.0 if t % 30 < 10 else 100.0

    steps = seen(square, 117).steps  # the next jump is 3 s away
    assert steps[0] < 150
    assert max(steps) == pytest.approx(1000, rel=0.1)
    assert max(seen(square, 117, rhythm=False).steps) < 150


def test_chance_and_error_grow_with_bursts():
    smooth, bursts = (seen(lambda t: 1000.0, 30, burst=b) for b in (1.0, 64.0))
    assert smooth.chance == pytest.approx(math.sqrt(1000 / PERIOD), rel=0.5)
    assert bursts.chance == pytest.approx(math.sqrt(64 * 1000 / PERIOD), rel=0.5)
    assert smooth.rate.error < 20.0 < bursts.rate.error


def test_nothing_is_foretold_of_nothing():
    source = seen(lambda t: 0.0, 5)
    assert (source.most, source.steps) == (0.0, [0.0] * int(AHEAD / STEP))
