from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import TopologyError
from esault.topology.parallelism import Parallelism


@given(st.integers(-2, 5), st.integers(-2, 5), st.none() | st.integers(-2, 5))
def test_exactly_ordered_numbers_from_one_on_are_accepted(start, least, most):
    good = 1 <= least <= start and (most is None or start <= most)
    if good:
        Parallelism(start, least, most).check("x")
    else:
        with pytest.raises(TopologyError, match=r"^unit 'x': "):
            Parallelism(start, least, most).check("x")


@pytest.mark.parametrize(
    ("parallelism", "said"),
    [
        (Parallelism(0), "unit 'x': parallelism=0 must be a whole number from 1 on"),
        (Parallelism(True), "unit 'x': parallelism=True must be a whole number from 1 on"),
        (Parallelism(2.0), "unit 'x': parallelism=2.0 must be a whole number from 1 on"),
        (Parallelism("2"), "unit 'x': parallelism='2' must be a whole number from 1 on"),
        (Parallelism(1, 0), "unit 'x': min_parallelism=0 must be a whole number from 1 on"),
        (Parallelism(1, 1, -1), "unit 'x': max_parallelism=-1 must be a whole number from 1 on"),
        (Parallelism(4, 4, 2), "unit 'x': min_parallelism=4 is greater than max_parallelism=2; change one"),
        (
            Parallelism(9, 1, 8),
            "unit 'x': parallelism=9, with which it starts, does not fit min_parallelism=1 and max_parallelism=8",
        ),
        (
            Parallelism(1, 2),
            "unit 'x': parallelism=1, with which it starts, does not fit min_parallelism=2; change one of them",
        ),
    ],
)
def test_each_mistake_is_named(parallelism, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        parallelism.check("x")


def test_a_unit_of_one_sub_unit_is_bounded_by_one():
    assert Parallelism().one("x", "because.") == Parallelism(1, 1, 1)


@pytest.mark.parametrize(
    ("parallelism", "said"),
    [
        (Parallelism(3), "unit 'x': parallelism=3, but because"),
        (Parallelism(1, 1, 4), "unit 'x': max_parallelism=4, but because"),
    ],
)
def test_more_than_one_sub_unit_is_refused_with_the_reason(parallelism, said):
    with pytest.raises(TopologyError, match=said):
        parallelism.one("x", "because")
