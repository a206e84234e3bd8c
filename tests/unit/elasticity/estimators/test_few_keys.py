"""Keys of a unit's tuples, where they are few: how many there are, and when that is not known."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from elasticity_views import KeyLoad, sample, view
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.estimators.few_keys import FEW, SAMPLED, FewKeys
from esault.topology.grouping import partial_key
from esault.topology.plan import Input


def load(places):
    return KeyLoad.of(places, str)


def unit(*loads):
    return view(100.0, [sample(n, key_load=each) for n, each in enumerate(loads)]).unit


@given(st.integers(1, 12), st.integers(0, 1 << 30))
def test_few_keys_are_counted_once_enough_was_sampled(keys, seed):
    order = random.Random(seed)
    drawn = [order.randrange(keys) for _ in range(400)]
    assert FewKeys().count(unit(load(drawn))) == len(set(drawn))


@given(st.lists(st.integers(0, 10_000), min_size=SAMPLED, max_size=400, unique=True), st.integers(0, 5))
def test_where_keys_come_once_there_may_be_any_number(places, repeated):
    assert FewKeys().count(unit(load([*places, *places[:repeated]]))) is None


def test_of_few_tuples_nothing_is_known():
    few = FewKeys()
    assert few.count(unit(load([7] * (SAMPLED - 1)))) is None
    assert few.count(unit(load([7] * SAMPLED))) == 1
    assert few.count(unit(load([7] * SAMPLED), load([]))) == 1  # a newcomer has had none
    assert few.count(unit(load([7] * SAMPLED), load([9, 9]))) == 2


def test_a_change_after_which_samples_are_taken_anew_makes_nothing_unknown_but_a_new_key_does():
    few = FewKeys()
    assert few.count(unit(load([1, 2] * SAMPLED))) == 2
    assert few.count(unit(load([1]), load([]))) == 2
    assert few.count(unit(load([1]), load([3]))) is None
    assert few.count(unit(load([1] * SAMPLED), load([3, 3]))) == 3


def test_keys_that_come_one_after_the_other_add_up_until_they_are_many():
    few = FewKeys()
    counts = [few.count(unit(load([key] * 50))) for key in range(FEW + 5)]
    assert counts == [*range(1, FEW + 1), *[None] * 5]
    assert few.count(unit(load([1] * 50))) is None


@pytest.mark.parametrize(
    "change",
    [{"objects": "sub-unit"}, {"inputs": (Input("in", "in", partial_key()),)}],
    ids=["no keys", "keys in parts"],
)
def test_it_is_for_objects_of_whole_keys(change):
    found = unit(load([7] * 50))
    other = replace(found, plan=replace(found.plan, **change))
    assert (FewKeys().count(found), FewKeys().count(other)) == (1, None)
