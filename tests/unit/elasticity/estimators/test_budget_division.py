"""The division of fewer sub-units than all units want."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.estimators.budget_division import FULL, Share, divided, wanted_in_all


def share(width, wanted, work, least=1, **more):
    """`work`: sub-units that would be busy all the time, of tuples of 1 ms."""
    return Share(width, wanted, least, rate=1000.0 * work, service=0.001, **more)


@pytest.mark.parametrize(
    ("slots", "shares", "found"),
    [
        # enough for all
        (9, {"a": share(1, 2, 1.1), "b": share(1, 5, 3.4)}, {"a": 2, "b": 5}),
        # not even enough for the work: the fullest first
        (4, {"a": share(1, 2, 1.1), "b": share(1, 5, 3.4)}, {"a": 1, "b": 3}),
        # enough for the work: where waits fall most
        (6, {"a": share(1, 4, 0.9), "b": share(1, 6, 2.8)}, {"a": 2, "b": 4}),
        # what is kept without being needed goes first
        (6, {"a": share(5, 2, 1.1), "b": share(1, 5, 3.4)}, {"a": 2, "b": 4}),
        # one gives to another whose work has grown
        (6, {"a": share(4, 4, 1.5), "b": share(2, 6, 3.6)}, {"a": 2, "b": 4}),
        # but not for a little: a's work is 5 % more for each
        (5, {"a": share(2, 4, 2.2), "b": share(3, 5, 3.1)}, {"a": 2, "b": 3}),
        # a tuple that may wait shorter is worth more
        (3, {"a": share(1, 3, 0.7), "b": share(1, 3, 0.7, latency=0.01)}, {"a": 1, "b": 2}),
        # a sub-unit of three replicas takes three slots, or none
        (6, {"a": share(1, 3, 2.0, copies=3), "b": share(1, 4, 2.0)}, {"a": 1, "b": 3}),
        # never below the least
        (4, {"a": share(3, 3, 0.1, least=3), "b": share(1, 9, 8.0)}, {"a": 3, "b": 1}),
    ],
)
def test_vectors(slots, shares, found):
    assert divided(slots, shares) == found


def test_what_would_do_counts_replicas_and_the_least():
    assert wanted_in_all({"a": share(1, 2, 1.1, copies=3), "b": share(1, 0, 0.0, least=2)}) == 8


SHARES = st.builds(
    share,
    width=st.integers(1, 5),
    wanted=st.integers(1, 6),
    work=st.floats(0.01, 6.0),
    least=st.integers(1, 2),
    burst=st.floats(1.0, 64.0),
    latency=st.floats(0.01, 1.0),
)


@given(st.lists(SHARES, min_size=1, max_size=3), st.integers(0, 8))
def test_it_keeps_to_the_slots_and_leaves_none_that_is_of_use(each, spare):
    shares = {str(i): one for i, one in enumerate(each)}
    slots = sum(one.least for one in each) + spare
    found = divided(slots, shares)
    assert all(shares[name].least <= n <= shares[name].most for name, n in found.items())
    assert sum(found.values()) == min(slots, wanted_in_all(shares))


@given(st.lists(SHARES, min_size=2, max_size=3), st.integers(0, 6))
def test_from_the_least_no_other_division_is_better(each, spare):
    each = [Share(one.least, one.wanted, one.least, one.rate, one.service, one.burst, one.latency) for one in each]
    shares = {str(i): one for i, one in enumerate(each)}
    slots = sum(one.least for one in each) + spare

    def cost(widths):
        fullest = max(one.work(n) for one, n in zip(each, widths))
        return (fullest, 0.0) if fullest >= FULL else (0.0, sum(one.waits(n) for one, n in zip(each, widths)))

    every = itertools.product(*(range(one.least, one.most + 1) for one in each))
    best = min(cost(widths) for widths in every if sum(widths) <= slots)
    found = cost(list(divided(slots, shares).values()))
    assert found <= (best[0] * (1 + 1e-9), best[1] * (1 + 1e-9) + 1e-9)


@given(st.lists(SHARES, min_size=1, max_size=3), st.integers(0, 6))
def test_who_has_what_it_was_given_keeps_it(each, spare):
    """A division that is asked for again, with the same figures, changes nothing: it does not swing."""
    shares = {str(i): one for i, one in enumerate(each)}
    slots = sum(one.least for one in each) + spare
    found = divided(slots, shares)
    again = {
        name: Share(found[name], one.wanted, one.least, one.rate, one.service, one.burst, one.latency)
        for name, one in shares.items()
    }
    assert divided(slots, again) == found
