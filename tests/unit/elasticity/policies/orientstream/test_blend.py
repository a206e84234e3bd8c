"""The own ensemble: who errs little near a sample counts much there, outliers count little, and common errors are added."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.policies.orientstream.blend import BEYOND, NEAREST, NO_BIAS, Blend, _weighted_median


def trained(samples, learners=2):
    """Of (x, predictions, target)."""
    made = Blend(learners)
    for x, predictions, y in samples:
        made.score({"x": x}, predictions, y)
    return made


def test_before_the_first_sample_all_count_alike():
    assert Blend(3).combine({"x": 0.0}, [1.0, 2.0, 3.0]) == pytest.approx(2.0)


def test_who_was_right_counts():
    made = trained([(0.0, [float(i % 10), 20.0], float(i % 10)) for i in range(60)])
    assert made.combine({"x": 0.0}, [4.0, 9.0]) == pytest.approx(4.0, abs=0.3)


def test_who_was_right_near_by_counts_more_than_who_was_right_elsewhere():
    made = trained([(0.0, [5.0, 9.0], 5.0), (100.0, [5.0, 9.0], 9.0)] * 40)
    assert made.combine({"x": 0.0}, [5.0, 9.0]) < 6.0
    assert made.combine({"x": 100.0}, [5.0, 9.0]) > 8.0


def test_what_all_had_too_little_near_by_is_added():
    made = trained([(0.0, [4.0, 4.0], 5.0 if i else 10.0) for i in range(80)])
    bias = made._region((0.0,))[1]
    # of the first, before anything was seen; of the second, taken to the range, which is 10; of the others, taken to 4.5
    assert bias == pytest.approx((6.0 - 5.0 + (NEAREST - 2) * 0.5) / (NEAREST + NO_BIAS))
    assert made.combine({"x": 0.0}, [4.0, 4.0]) == pytest.approx(4.5 + bias)


def test_predictions_stay_near_the_range_of_what_was_seen():
    made = trained([(0.0, [y, y], y) for y in (10.0, 20.0)])
    assert made._clipped([1000.0, -1000.0, 15.0]) == [20.0 + 10 * BEYOND, 10.0 - 10 * BEYOND, 15.0]


def test_one_far_from_the_others_counts_little():
    made = trained(
        [(0.0, [10.0 + i % 3 - 1, 10.0 - i % 3 + 1, 11.0], 10.0 if i else 90.0) for i in range(60)], learners=3
    )
    combined = made.combine({"x": 0.0}, [10.0, 10.0, 80.0])
    assert combined < 14.0


@pytest.mark.parametrize(
    ("values", "weights", "median"),
    [
        ([1, 2, 3], [1, 1, 1], 2),
        ([3, 1, 2], [9, 1, 1], 3),
        ([1, 2], [1, 1], 1),
        ([5], [0.1], 5),
        ([1, 2, 3], [1, 1, 2], 2),
    ],
)
def test_the_weighted_median_is_where_half_of_the_weight_is_reached(values, weights, median):
    assert _weighted_median(values, weights) == median


@pytest.mark.parametrize("little", [5e-324, 1e-200, 1e-90])
def test_a_feature_that_has_hardly_varied_may_jump(little):
    made = trained([(0.0, [3.0, 3.0], 3.0), (little, [3.0, 3.0], 3.0)] * 5)
    assert made.combine({"x": 1e100}, [3.0, 3.0]) == pytest.approx(3.0)


@given(st.lists(st.tuples(st.floats(-10, 10), st.floats(-10, 10), st.floats(-10, 10)), min_size=1, max_size=40))
def test_learners_that_agree_are_believed_up_to_the_common_error(samples):
    made = trained([(x, [p, p], y) for x, p, y in samples])
    bias = made._region((0.0,))[1]
    (clipped,) = made._clipped([3.0])
    assert made.combine({"x": 0.0}, [3.0, 3.0]) == pytest.approx(clipped + bias, abs=1e-6)
    assert made._samples == len(samples)
