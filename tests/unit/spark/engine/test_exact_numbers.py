"""Numbers with which Arrow reckons as Python does, to the type and the last bit."""

from __future__ import annotations

import math
import struct

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.spark.engine.exact_numbers import ADDENDS, MOST, known_numbers, numbers_of

numbers = st.lists(st.integers() | st.integers(-10, 10), min_size=1, max_size=6) | st.lists(
    st.floats() | st.sampled_from([0.0, -0.0]), min_size=1, max_size=6
)


def same(a, b):
    return type(a) is type(b) and (struct.pack("d", a) == struct.pack("d", b) if isinstance(a, float) else a == b)


@given(numbers)
def test_where_numbers_are_taken_least_and_greatest_are_pythons(parts):
    found = numbers_of(parts)
    if found is None:
        assert any((isinstance(p, float) and (math.isnan(p) or p == 0.0)) or abs(p) >= 2**63 - 1 for p in parts)
        return
    assert all(map(same, found.to_pylist(), parts))
    assert same(pc.min(found).as_py(), min(parts)) and same(pc.max(found).as_py(), max(parts))


@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(MOST - 3, MOST + 3), min_size=1, max_size=6))
def test_where_they_are_summed_the_sum_is_pythons(parts):
    found = numbers_of(parts, summed=True)
    assert (found is None) is any(abs(part) > MOST for part in parts)
    if found is not None:
        assert pc.sum(found).as_py() == sum(parts)


def test_as_many_of_the_greatest_as_may_be_fit():
    assert ADDENDS * MOST < 2**63 <= ADDENDS * (MOST + 2)


@pytest.mark.parametrize(
    "parts", [[True], [1, 2.0], [1, True], ["a"], [None], [1, None], [2**63], [-0.0], [math.nan, 1.0]]
)
def test_others_are_left_to_python(parts):
    assert numbers_of(parts) is None


def test_columns_of_other_widths_are_taken_where_they_fit():
    assert known_numbers(pa.array([1, 2], pa.uint8())).type == pa.int64()
    assert known_numbers(pa.array([1.5], pa.float32())).to_pylist() == [1.5]
    assert known_numbers(pa.array([2**63], pa.uint64())) is None
    for column in (None, pa.array([], pa.int64()), pa.array([1, None]), pa.array(["a"]), pa.array([True])):
        assert known_numbers(column) is None


def test_the_bounds_of_a_sum_are_exact():
    assert all(numbers_of([bound], summed=True) is not None for bound in (-MOST, MOST))
    assert all(numbers_of([bound], summed=True) is None for bound in (-MOST - 1, MOST + 1))
