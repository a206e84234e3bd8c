"""CRAA's formulas: all vectors of its specification. Windows last 5 s."""

from __future__ import annotations

import pytest

from esault.elasticity.policies.craa_model import (
    Candidate,
    executes,
    occupancy,
    out_rate,
    rate_change,
    relation,
    shrink_wanted,
    slowed,
    throttle_floor,
    unit_change,
    upper_input_rate,
)


@pytest.mark.parametrize(
    ("arrivals", "rate", "waiting", "ratio", "emitted"),
    [
        (400, 500, 50, 1, 410),
        (495, 500, 50, 1, 500),
        (500, 500, 4995, 1, 500),
        (600, 500, 0, 0.5, 250),
        # an efficiency of 0.5 is half the rate
        (300, 500 * 0.5, 5000, 2, 500),
    ],
)
def test_out_rate(arrivals, rate, waiting, ratio, emitted):
    assert out_rate(arrivals, rate, waiting, 5, ratio) == pytest.approx(emitted)


@pytest.mark.parametrize(
    ("ratios", "inputs"),
    [
        ((1, 1, 1, 1), [20, 20, 20, 20, 20]),
        ((0.5, 0.5, 0.5, 0.5), [20, 10, 5, 2.5, 1.25]),
        ((2, 1, 0.5, 1), [20, 40, 40, 20, 20]),
    ],
)
def test_chain(ratios, inputs):
    rates = [20.0]
    for ratio in ratios:
        rates.append(out_rate(rates[-1], rates[-1], 0, 5, ratio))
    assert rates == inputs


@pytest.mark.parametrize(
    ("arrivals", "rate", "waiting", "size", "after", "full", "change", "one", "units"),
    [
        (6000, 5000, 3500, 5000, 8500, 1.7, 1000, 100, 10),
        (6000, 5000, 0, 5000, 5000, 1.0, 300, 100, 3),
        (6000, 5000, 0, 2000, 5000, 2.5, 720, 200, 4),
        (1000, 2000, 1400, 2000, -3600, -1.8, -1000, 200, -5),
    ],
)
def test_buffer_and_size(arrivals, rate, waiting, size, after, full, change, one, units):
    assert occupancy(arrivals, rate, 5, waiting) == after
    assert after / size == full
    assert rate_change(after, size, 0.7, 5) == pytest.approx(change)
    assert unit_change(rate_change(after, size, 0.7, 5), one) == units


def test_the_buffer_ends_at_delta():
    assert occupancy(6000, 5000 + 3 * 100, 5, 0) == 0.7 * 5000


def test_taking_away_rounds_towards_zero_unless_as_printed():
    assert unit_change(1250, 500) == 3
    assert unit_change(-750, 500) == -1
    assert unit_change(-750, 500, "floor") == -2
    assert unit_change(0, 500) == 0


def test_upper_input_rate():
    assert upper_input_rate(5000, 5, 5000, 0.7, 3600) == pytest.approx(4980)


@pytest.mark.parametrize(
    ("width", "one", "arrivals", "printed", "alpha"),
    [
        (10, 500, 4000, True, True),
        (10, 500, 4100, False, True),
        (50, 100, 4700, True, True),
        (50, 100, 4850, False, True),
        (2, 500, 240, True, True),
        (2, 500, 260, False, True),
        (1, 500, 0, False, False),
    ],
)
def test_usage(width, one, arrivals, printed, alpha):
    assert shrink_wanted(arrivals, width, one) is printed
    assert shrink_wanted(arrivals, width, one, "alpha") is alpha


def test_throttle_floor():
    assert throttle_floor(3000, 3000, 2000, 10000, 0.8, 5) == pytest.approx(1800)
    assert throttle_floor(3000, 3800, 2000, 10000, 0.8, 5) == pytest.approx(2200)
    # its buffer is full: it cannot be slowed
    assert throttle_floor(3000, 3000, 9000, 10000, 0.8, 5) == 3000


@pytest.mark.parametrize(
    ("needed", "chosen"), [(500, ["U1"]), (1300, ["U1", "U3"]), (1700, ["U1", "U3", "U2"]), (1900.1, []), (0, [])]
)
def test_whom_to_slow(needed, chosen):
    candidates = [Candidate("U1", 1800, 1200), Candidate("U2", 2500, 300), Candidate("U3", 2000, 400)]
    assert [c.unit for c in slowed(needed, candidates)] == chosen


@pytest.mark.parametrize(
    ("change", "trend", "to"), [(1, 1.2, 0), (1, 1, 0), (1, 0.8, 1), (-1, 0.8, 0), (-1, 1, 0), (-1, 1.2, -1)]
)
def test_relation(change, trend, to):
    assert relation(change, trend) == to


def test_a_trend_within_the_tolerance_is_none():
    assert (relation(1, 0.99), relation(1, 0.99, 0.02), relation(1, 0.97, 0.02)) == (1, 0, 1)
    assert (relation(-1, 1.01), relation(-1, 1.01, 0.02)) == (-1, 0)


@pytest.mark.parametrize(
    ("to", "after", "made"), [(1, 2500, True), (1, 1900, False), (0, 0, True), (0, 9000, True), (-1, 5000, False)]
)
def test_execution(to, after, made):
    assert executes(to, after, 2000) is made
