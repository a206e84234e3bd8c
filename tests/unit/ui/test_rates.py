"""Rates and numbers for people."""

from __future__ import annotations

import re
from types import SimpleNamespace as Made

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.ui.rates import Rates, percent, short

SIZES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


def unit(name, kind="bolt", came=0, went=0, progress=None):
    return Made(name=name, kind=kind, tuples_in=came, tuples_out=went, progress=progress)


def at(now, *units):
    return Made(now=now, units=units)


@given(st.floats(0, 9.9e11))
def test_a_short_number_is_near_and_has_four_digits_at_most(number):
    found = re.fullmatch(r"(\d{1,4}|\d{1,3}\.\d+)(?: ([kMG]))?", short(number))
    assert found, short(number)
    digits, suffix = found.group(1), found.group(2) or ""
    assert len(digits.replace(".", "")) <= 4
    assert float(digits) * SIZES[suffix] == pytest.approx(number, rel=0.006, abs=0.5)


@pytest.mark.parametrize(
    ("number", "text"), [(999_999, "1 M"), (999_600, "1 M"), (999_400, "999 k"), (999_999_999, "1 G"), (998.7, "999")]
)
def test_what_is_nearly_a_million_is_one(number, text):
    assert short(number) == text


def test_rates_are_those_between_two_snapshots_far_enough_apart():
    rates = Rates(over=0.5)
    assert rates.update(at(10.0, unit("s", "spout", went=0), unit("b"))) == {}
    assert rates.update(at(10.4, unit("s", "spout", went=1000), unit("b", came=9))) == {}
    found = rates.update(at(12.0, unit("s", "spout", went=100, came=7), unit("b", came=50), unit("new", came=20)))
    assert found == {"s": 50.0, "b": 25.0, "new": 10.0}
    assert rates.update(at(12.1, unit("b", came=500))) == found


def test_counts_that_fall_back_are_no_negative_rate():
    rates = Rates()
    rates.update(at(0.0, unit("b", came=100)))
    assert rates.update(at(1.0, unit("b", came=40))) == {"b": 0.0}
    assert rates.update(at(2.0, unit("b", came=50))) == {"b": 10.0}


def test_the_share_that_was_read_is_known_where_all_sources_know():
    one, two = unit("a", "spout", progress=(10, 40)), unit("b", "spout", progress=(20, 20))
    assert percent(at(0, one, two, unit("c"))) == 50.0
    assert percent(at(0, one, unit("b", "spout"))) is None
    assert percent(at(0, unit("c", progress=(1, 2)))) is None
    assert percent(at(0, unit("a", "spout", progress=(0, 0)))) == 100.0
