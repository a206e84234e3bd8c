"""Columns of scalars alone."""

from __future__ import annotations

import enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.payload.scalars import SCALARS, all_scalars


class Word(str):
    pass


class Level(enum.IntEnum):
    LOW = 1


one = st.sampled_from(
    [1, 1.5, "a", b"a", True, None, float("nan"), 2**70, (), [], Word("a"), Level.LOW, np.float64(1), np.str_("a")]
)


@given(st.lists(one, min_size=1, max_size=6))
def test_each_is_looked_at(column):
    assert all_scalars(column) is all(type(value) in SCALARS for value in column)
    assert all_scalars(tuple(column)) is all_scalars(column)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_derived_from_them_is_enough(place):
    column = ["a", "b", "c"]
    column[place] = Word("a")
    assert not all_scalars(column)
