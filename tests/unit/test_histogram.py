"""The histogram: quantiles within 5 %, exact sums, exact maximum."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.histogram import CEILING, FLOOR, GROWTH, Histogram

seconds = st.floats(FLOOR * 1.001, CEILING / 1.001)


def histogram_of(durations) -> Histogram:
    histogram = Histogram()
    for duration in durations:
        histogram.record(duration)
    return histogram


def test_nothing_recorded_is_all_zeros():
    histogram = Histogram()
    assert histogram.summary_ms() == {"p50": 0.0, "p99": 0.0, "max": 0.0}
    assert (histogram.quantile(0.5), histogram.quantile(1), histogram.max, histogram.count) == (0.0, 0.0, 0.0, 0)
    assert histogram.snapshot() == (0.0, ())


@given(st.lists(seconds, min_size=1, max_size=200), st.floats(0, 1))
def test_a_quantile_is_within_5_percent_of_the_exact_one(durations, q):
    exact = sorted(durations)[max(0, math.ceil(q * len(durations)) - 1)]
    assert histogram_of(durations).quantile(q) == pytest.approx(exact, rel=0.05)


@given(seconds)
def test_one_duration_is_its_own_maximum_and_every_quantile(duration):
    histogram = histogram_of([duration])
    assert histogram.max == histogram.quantile(1) == duration
    assert histogram.quantile(0) <= duration
    assert abs(histogram.quantile(0.5) - duration) <= (math.sqrt(GROWTH) - 1 + 1e-9) * duration


def test_the_summary_is_in_milliseconds():
    draw = random.Random(1)
    durations = [draw.expovariate(100) for _ in range(20_000)]
    summary = histogram_of(durations).summary_ms()
    durations.sort()
    assert summary["p50"] == pytest.approx(durations[10_000] * 1000, rel=0.05)
    assert summary["p99"] == pytest.approx(durations[19_800] * 1000, rel=0.05)
    assert summary["max"] == durations[-1] * 1000


@given(st.lists(seconds, max_size=50), st.lists(seconds, max_size=50))
def test_merging_is_as_if_all_had_been_recorded_in_one(some, others):
    merged = histogram_of(some)
    merged.merge(histogram_of(others))
    assert merged.snapshot() == histogram_of(some + others).snapshot()
    assert merged.count == len(some) + len(others)


def test_merging_with_itself_doubles():
    histogram = histogram_of([0.1, 0.2])
    histogram.merge(histogram)
    assert histogram.snapshot() == histogram_of([0.1, 0.2] * 2).snapshot()


def test_recording_n_times_is_recording_n_times():
    histogram = Histogram()
    histogram.record(0.25, 3)
    histogram.record(9.0, 0)
    assert histogram.snapshot() == histogram_of([0.25] * 3).snapshot()
    assert histogram.count == len(histogram) == 3


def test_what_is_too_short_or_negative_or_too_long_is_counted_at_the_ends():
    histogram = histogram_of([0.0, -5.0, FLOOR, 1e-12])
    assert histogram.quantile(0.5) <= FLOOR * GROWTH
    assert histogram.max == FLOOR
    histogram = histogram_of([1e12, CEILING])
    assert histogram.quantile(0.5) == pytest.approx(CEILING, rel=GROWTH - 1)
    assert histogram.max == 1e12


def test_nan_and_negative_counts_are_refused():
    histogram = Histogram()
    with pytest.raises(ValueError, match="nan is no duration"):
        histogram.record(math.nan)
    with pytest.raises(ValueError, match="cannot be counted -1 times"):
        histogram.record(1.0, -1)
    assert histogram.snapshot() == (0.0, ())


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_a_quantile_outside_0_and_1_is_refused(q):
    with pytest.raises(ValueError, match="a quantile is between 0 and 1"):
        histogram_of([1.0]).quantile(q)


@given(st.lists(seconds, max_size=50))
def test_a_snapshot_is_a_plain_value_and_comes_back_as_it_was(durations):
    histogram = histogram_of(durations)
    snapshot = histogram.snapshot()
    back = Histogram.from_snapshot(snapshot)
    assert back.snapshot() == snapshot
    assert back.count == len(durations)
    back.record(1.0)
    assert histogram.snapshot() == snapshot


@pytest.mark.parametrize(
    "snapshot",
    [
        None,
        7,
        (1.0,),
        (1.0, 5),
        (1.0, ((1, 2, 3),)),
        (1.0, ((1, 0),)),
        (1.0, ((-1, 1),)),
        (1.0, ((10**6, 1),)),
        (1.0, ((1, 1), (1, 1))),
        (1.0, (("a", 1),)),
        (1.0, ((1, 1.5),)),
        (-1.0, ()),
        ("x", ()),
        (math.nan, ()),
    ],
)
def test_what_is_no_snapshot_of_a_histogram_is_refused(snapshot):
    with pytest.raises(ValueError, match=r"no snapshot of a histogram|values to unpack|update sequence"):
        Histogram.from_snapshot(snapshot)


@given(st.lists(seconds.filter(lambda s: s < 1e6), max_size=50))
def test_counts_between_bounds_and_the_sum_are_within_5_percent(durations):
    bounds = (0.001, 0.1, 1.0, 60.0)
    counts, total = histogram_of(durations).between(bounds)
    assert sum(counts) == len(durations) and total == pytest.approx(sum(durations), rel=0.05)
    for index, bound in enumerate(bounds):
        below = sum(counts[: index + 1])
        assert sum(s <= bound * 0.95 for s in durations) <= below <= sum(s <= bound * 1.05 for s in durations)


def test_counts_between_bounds_only_grow():
    histogram = histogram_of([0.95])
    before = histogram.between((0.96,))
    histogram.record(5.0)
    assert histogram.between((0.96,))[0] == (before[0][0], before[0][1] + 1)


def test_a_histogram_shows_its_summary():
    assert repr(histogram_of([0.001, 0.001])) == "<Histogram of 2: p50 1 ms, p99 1 ms, max 1 ms>"
