"""The session of a key that is open: its rows wait in order of their times, whatever order they come in."""

from __future__ import annotations

import math
from itertools import count
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.flow.operators import open_session as module
from esault.flow.operators.open_session import OpenSession
from esault.windows import Window


class Objects:
    number = 5

    def packed(self, element):
        return f"packed {element.name}".encode()

    def restored(self, key, window, state):
        return SimpleNamespace(name=state.decode(), key=key, made_in=window, window=None)


def session():
    made = OpenSession(Objects())
    made.key = "k"
    return made


def row(at, number, value=None):
    return at, number, "", value


def with_rows(*times):
    made = session()
    for number, at in enumerate(times):
        made.wait(row(at, number))
    return made


def numbers(rows):
    return [number for _, number, *_ in rows]


@pytest.mark.parametrize("few", [0, 256])
@given(
    times=st.lists(st.integers(0, 9), max_size=20),
    steps=st.lists(st.tuples(st.integers(0, 10), st.booleans()), max_size=6),
)
def test_rows_leave_in_the_order_of_their_times_and_equal_ones_as_they_came(few, times, steps):
    module_few, module.FEW = module.FEW, few
    try:
        made = with_rows(*times)
        left = sorted((at, number) for number, at in enumerate(times))
        numbered = count(len(times))
        for until, again in steps:
            passed = made.passed(until)
            assert [(at, number) for at, number, *_ in passed] == [each for each in left if each[0] < until]
            left = [each for each in left if each[0] >= until]
            if again:
                made.put_back(passed)
                left = [*((at, number) for at, number, *_ in passed), *left]
            number = next(numbered)
            made.wait(row(5, number))
            left = sorted([*left, (5, number)])
        assert sorted((at, number) for at, number, *_ in made.rows) == left
        assert made.first == (left[0][0] if left else math.inf)
    finally:
        module.FEW = module_few


def test_rows_in_order_are_known_to_be_so():
    assert with_rows(1, 1, 2).in_order
    made = with_rows(1, 3, 2)
    assert not made.in_order
    assert numbers(made.passed(2)) == [0]
    assert made.in_order
    assert numbers(made.passed(9)) == [2, 1]
    assert made.rows == []


def test_it_is_looked_at_behind_its_first_row_or_its_end():
    made = session()
    assert made.next == math.inf
    made.wait(row(4.0, 0))
    assert made.next == math.nextafter(4.0, math.inf)
    made.element, made.start, made.end = object(), 1.0, 3.0
    assert made.next == math.nextafter(3.0, math.inf)
    assert made.first == 1.0
    made.end = 9.0
    assert made.next == math.nextafter(4.0, math.inf)
    assert made.window == Window(1.0, 9.0)
    assert made.objects() == [made.element]
    assert session().objects() == []


def test_it_comes_back_as_it_was_and_its_rows_stand_before_those_to_come():
    made = with_rows(6.0, 5.0, 5.0)
    made.element, made.start, made.end = SimpleNamespace(name="sum"), 1.0, 3.0
    state = made.__getstate__()
    assert state[:2] == (math.nextafter(3.0, math.inf), 5)
    other = session()
    other.__setstate__(state)
    assert other.wake_at == made.next
    assert (other.start, other.end) == (1.0, 3.0)
    assert (other.element.name, other.element.key, other.element.made_in) == ("packed sum", "k", Window(1.0, 3.0))
    assert other.element.window is other
    assert [(at, number) for at, number, *_ in other.rows] == [(5.0, -3), (5.0, -2), (6.0, -1)]
    other.wait(row(5.0, 0))
    assert numbers(other.passed(6.0)) == [-3, -2, 0]


def test_one_without_a_session_comes_back_without():
    other = session()
    other.__setstate__(with_rows(4.0).__getstate__())
    assert other.element is None
    assert other.start == math.inf
    assert numbers(other.rows) == [-1]
