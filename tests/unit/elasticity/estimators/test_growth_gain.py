"""Growth that brought nothing is not followed by more."""

from __future__ import annotations

import pytest

from esault.elasticity.estimators.growth_gain import AGAIN, LONGEST, GrowthGain


def measured(gain, rate, width, windows=4):
    """So many windows of a quarter of a second, full all the time."""
    for _ in range(windows):
        gain.add(True, rate * 0.25, 0.25, width)


def grown(before, after, widths=(4, 8)):
    gain = GrowthGain()
    measured(gain, before, widths[0])
    gain.grows(*widths)
    measured(gain, after, widths[1])
    return gain


@pytest.mark.parametrize(("after", "says"), [(1000.0, True), (900.0, True), (1200.0, True), (1300.0, False)])
def test_a_growth_must_have_brought_a_quarter_of_what_it_promised(after, says):
    assert bool(grown(1000.0, after).why_not(8, 100.0)) == says


def test_the_figures_are_said():
    assert grown(1000.0, 1010.0).why_not(8, 0.0).startswith("8 in place of 4 got 1,010 tuples/s done in place of 1,000")


def test_it_is_tried_again_and_ever_more_rarely():
    gain, now, width, waited = GrowthGain(), 0.0, 1, []
    measured(gain, 500.0, width)
    for _ in range(7):
        gain.grows(width, width + 1)
        width += 1
        measured(gain, 500.0, width)
        began = now
        while gain.why_not(width, now):
            now += 1.0
        waited.append(now - began)
    assert waited == [AGAIN, 60.0, 120.0, 240.0, LONGEST, LONGEST, LONGEST]


def test_one_that_brings_something_makes_it_forget_the_others():
    gain = grown(1000.0, 1000.0)
    assert gain.why_not(8, 0.0) and not gain.why_not(8, AGAIN)
    gain.grows(8, 16)
    measured(gain, 2000.0, 16)
    assert not gain.why_not(16, AGAIN)
    gain.grows(16, 32)
    measured(gain, 2000.0, 32)
    assert gain.why_not(32, 50.0) and not gain.why_not(32, 50.0 + AGAIN)


def test_nothing_is_said_where_it_was_not_full_before_or_is_not_now():
    gain = GrowthGain()
    gain.add(False, 250.0, 0.25, 4)
    gain.grows(4, 8)
    measured(gain, 1000.0, 8)
    assert not gain.why_not(8, 0.0)
    gain = grown(1000.0, 1000.0)
    assert not gain.why_not(8, 0.0, blind=False)
    gain.add(False, 250.0, 0.25, 8)
    assert not gain.why_not(8, 0.0)


def test_a_pause_does_not_make_it_forget_what_it_has_found():
    gain = grown(1000.0, 1000.0)
    said = gain.why_not(8, 0.0)
    gain.add(False, 250.0, 0.25, 8)
    assert said and gain.why_not(8, 1.0, blind=False) == said


def test_nothing_is_said_of_another_width_or_of_a_few_tuples():
    gain = grown(1000.0, 1000.0)
    measured(gain, 1000.0, 6)  # somebody else changed it
    assert not gain.why_not(6, 0.0)
    assert not grown(8.0, 8.0).why_not(8, 0.0)
