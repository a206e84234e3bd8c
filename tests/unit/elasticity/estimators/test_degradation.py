"""The degradation of Sousa's dissertation, 3.2.1 and 3.2.2: its worked examples, and others computed by hand."""

from __future__ import annotations

import pytest

from esault.elasticity.estimators.degradation import degradation, growths, ranked, reported

TEN = (10, 11, 12, 13, 20, 15, 18, 30, 10, 12)
X, Y, Z = (12, 5, 15), (5, 5, 10), (20, 30, 20)


@pytest.mark.parametrize(
    ("latencies", "d", "g", "s"),
    [
        (X, 0.25, (0, 10), 10 / 12),  # printed 0,8
        (Y, 0.25, (0, 5), 1.0),
        (Z, 0.25, (10, 0), 0.5),  # printed 0,66, which its own fraction is not
        (Z, 0.75, (0, 0), 0.0),
        (Z, 0.50, (0, 0), 0.0),  # 30 is not more than 50 % above 20
        (TEN, 0, (1, 1, 1, 7, 0, 3, 12, 0, 2), 2.7),
        (TEN, 0.10, (0, 0, 0, 7, 0, 3, 12, 0, 2), 2.4),
        (TEN, 0.25, (0, 0, 0, 7, 0, 0, 12, 0, 0), 1.9),
        (TEN, 0.50, (0, 0, 0, 7, 0, 0, 12, 0, 0), 1.9),
        (TEN, 0.75, (0,) * 9, 0.0),
        *(((100, 100, 100), d, (0, 0), 0.0) for d in (0, 0.25, 0.75)),  # high but steady
    ],
)
def test_growth_and_degradation(latencies, d, g, s):
    assert tuple(growths(latencies, d)) == g
    assert degradation(latencies, d) == pytest.approx(s)


@pytest.mark.parametrize("latencies", [(), (5,), (0, 5, 10)])
def test_too_few_reports_or_a_first_one_of_nothing_are_no_degradation(latencies):
    assert degradation(latencies, 0.25) == 0.0


def test_the_worst_are_first_and_those_that_are_no_worse_are_left_out():
    assert ranked({"x": X, "y": Y, "z": Z, "steady": (100, 100)}, {}, 0.25) == ["y", "x", "z"]


def test_of_equals_the_one_that_was_moved_longest_ago_is_first():
    same = (10, 18)  # s = 0.8
    histories = {"late": same, "early": same, "never": same}
    assert ranked(histories, {"late": 60.0, "early": 0.0}, 0.25) == ["never", "early", "late"]


def test_a_report_is_the_mean():
    assert reported((10, 15, 20, 10, 20)) == 15
    with pytest.raises(ValueError, match="no report"):
        reported(())
