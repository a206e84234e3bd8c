"""AUTOSCALE's formulas and tables: all vectors of its specification."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.policies.autoscale_load import activity_level, capacity, correction, forecast, ols
from esault.elasticity.policies.autoscale_tables import band, global_actions, local_action, new_degree

INSTANTS = (10, 20, 30, 40, 50, 60)
OUT, IN, NOTHING = "scale-out", "scale-in", "nothing"


@pytest.mark.parametrize(
    ("counts", "slope", "intercept", "expected", "printed"),
    [
        ((100, 120, 140, 160, 180, 200), 2.0, 80.0, 1620, 900),
        ((200, 180, 160, 140, 120, 100), -2.0, 220.0, 200, 900),
        ((300, 240, 180, 120, 60, 0), -6.0, 360.0, 0, 900),
        ((30, 52, 41, 60, 55, 62), 0.537142857142857, 31.2, 493.371428571428, 300),
        ((50, 50, 50, 50, 50, 50), 0, 50, 300, 300),
    ],
)
def test_regression_and_forecast(counts, slope, intercept, expected, printed):
    assert ols(INSTANTS, counts) == pytest.approx((slope, intercept))
    assert forecast(INSTANTS, counts, 60) == pytest.approx((expected, slope))
    assert forecast(INSTANTS, counts, 0) == pytest.approx((printed, slope))


def test_no_sub_interval_counts_below_0():
    slope, intercept = ols(INSTANTS, (200, 180, 160, 140, 120, 100))
    each = [slope * (t + 60) + intercept for t in INSTANTS]
    assert each == pytest.approx([80, 60, 40, 20, 0, -20])
    assert sum(each) == pytest.approx(180)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=20))
def test_the_printed_sum_is_what_arrived(counts):
    instants = [10.0 * (i + 1) for i in range(len(counts))]
    slope, intercept = ols(instants, counts)
    assert sum(slope * t + intercept for t in instants) == pytest.approx(sum(counts), abs=1e-3)
    if all(slope * t + intercept >= 0 for t in instants):
        assert forecast(instants, counts, 0)[0] == pytest.approx(sum(counts), abs=1e-3)


def test_one_instant_is_no_line():
    assert ols([5.0, 5.0], [1, 3]) == (0.0, 2.0)


@pytest.mark.parametrize(
    ("latency", "degree", "capable", "arrivals", "waiting", "activity", "where"),
    [
        (0.1, 2, 1200, 1620, 150, 1.475, "critical"),
        (0.1, 2, 1200, 900, 150, 0.875, "strong"),
        (0.08, 12, 9000, 8400, 7050, 1.7166666666, "critical"),
        (0.08, 1, 750, 300, 0, 0.4, "low"),
        (0.08, 1, 750, 600, 0, 0.8, "normal"),
        (0.08, 1, 750, 750, 0, 1.0, "strong"),
        (0.002, 1, 30000, 8400, 0, 0.28, "low"),
    ],
)
def test_capacity_activity_and_band(latency, degree, capable, arrivals, waiting, activity, where):
    assert capacity(latency, degree, 60) == pytest.approx(capable)
    assert activity_level(arrivals, waiting, capacity(latency, degree, 60)) == pytest.approx(activity)
    assert band(activity, 0.4, 0.8) == where


def test_without_capacity_all_load_is_too_much():
    assert activity_level(1, 0, 0) == math.inf
    assert band(math.inf, 0.4, 0.8) == "critical"


@pytest.mark.parametrize(
    ("activity", "falling", "level", "rising"),
    [(0.3, IN, IN, NOTHING), (0.6, NOTHING, NOTHING, NOTHING), (0.9, NOTHING, NOTHING, OUT), (1.2, OUT, OUT, OUT)],
)
def test_local_table(activity, falling, level, rising):
    assert [local_action(activity, slope) for slope in (-1, 0, 1)] == [falling, level, rising]


def test_a_dead_band_hides_a_small_trend():
    assert local_action(0.9, 0.1, dead_band=0.1) == NOTHING
    assert local_action(0.9, 0.11, dead_band=0.1) == OUT


LINE = {"B": ("A",), "C": ("B",)}


@pytest.mark.parametrize(
    ("local", "final"),
    [
        ((IN, IN, OUT), (IN, IN, OUT)),
        ((OUT, NOTHING, IN), (OUT, OUT, NOTHING)),
        ((OUT, IN, NOTHING), (OUT, NOTHING, NOTHING)),
        # all ancestors, and not the direct senders, would leave C alone
        ((OUT, IN, IN), (OUT, NOTHING, IN)),
    ],
)
def test_global_table_on_a_line(local, final):
    assert tuple(global_actions("ABC", LINE, dict(zip("ABC", local))).values()) == final


def test_global_table_on_a_diamond():
    senders = {"A": ("S",), "B": ("A",), "C": ("A",), "D": ("B", "C")}
    local = {"A": OUT, "B": NOTHING, "C": IN, "D": IN}
    assert global_actions("ABCD", senders, local) == {"A": OUT, "B": OUT, "C": NOTHING, "D": NOTHING}


def test_an_action_that_does_not_pass_is_nothing_downstream():
    local = dict(zip("ABC", (OUT, NOTHING, IN)))
    held = global_actions("ABC", LINE, local, lambda unit, _: unit != "A")
    assert tuple(held.values()) == (OUT, NOTHING, IN)


@pytest.mark.parametrize(
    ("action", "degree", "activity", "most", "after"),
    [
        (OUT, 2, 1.475, 24, 3),
        (OUT, 1, 4.3, 24, 5),
        (OUT, 4, 6.5, 24, 24),
        (OUT, 3, 0.93, 24, 4),
        (OUT, 3, 0.25, 24, 4),
        (OUT, 24, 0.93, 24, 24),
        (OUT, 100, 1.1, 200, 110),
        (IN, 12, 0.25, 24, 3),
        (IN, 12, 0.02, 24, 1),
        (IN, 2, 0.0, 24, 1),
        (IN, 10, 0.31, 24, 4),
        (NOTHING, 7, 0.5, 24, 7),
        (OUT, 3, math.inf, 24, 24),
    ],
)
def test_new_degree(action, degree, activity, most, after):
    assert new_degree(action, degree, activity, most) == after


def test_never_below_the_least():
    assert new_degree(IN, 12, 0.02, 24, least=3) == 3


def test_the_correction_follows_a_trend_of_capacities_only():
    assert correction([750.0] * 5, 4) == 0.0
    assert correction([750.0, 700.0], 4) == 0.0
    # differences -10, -20, -30, -40 are perfectly correlated with those before them
    assert correction([750, 740, 720, 690, 650], 3) == pytest.approx(3 * -40)
