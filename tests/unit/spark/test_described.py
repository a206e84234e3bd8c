"""Steps of time over which rows are told."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.spark.described import _STEPS, _WIDTHS, _said, _width


@given(st.timedeltas(timedelta(microseconds=1), timedelta(days=30 * _STEPS)))
def test_the_narrowest_steps_that_are_few_enough(span):
    first = datetime(2000, 1, 1)
    width = _width(first, first + span)
    assert span.total_seconds() / width <= _STEPS
    narrower = [each for each in _WIDTHS if each < width]
    assert not narrower or span.total_seconds() / narrower[-1] > _STEPS


def test_beyond_all_the_widest():
    assert _width(datetime(1, 1, 1), datetime(9999, 12, 31)) == _WIDTHS[-1]


@pytest.mark.parametrize(
    ("width", "said"), [(1, "second"), (15, "15 seconds"), (60, "minute"), (21600, "6 hours"), (604800, "7 days")]
)
def test_a_width_is_said_in_the_greatest_unit(width, said):
    assert _said(width) == said


def test_all_widths_can_be_said_and_are_told_apart():
    assert len({_said(width) for width in _WIDTHS}) == len(_WIDTHS)
