"""Destinations of Sousa's dissertation, 3.2.3: formulas 3.5 and 3.6, and greedy plans."""

from __future__ import annotations

import pytest

from esault.elasticity.policies.destination import feasible, planned


def shares(cpu, ram, net):
    return {"cpu": cpu, "ram": ram, "net": net}


@pytest.mark.parametrize(
    ("destination", "usage", "source", "yes"),
    [
        ((0.40, 0.50, 0.30), (0.20, 0.10, 0.10), (0.90, 0.60, 0.50), True),
        ((0.40, 0.50, 0.30), (0.20, 0.11, 0.10), (0.90, 0.60, 0.50), False),  # ram .61 > .60
        ((0.70, 0.50, 0.40), (0.20, 0.10, 0.10), (0.90, 0.60, 0.50), False),  # all equal, none lower
        ((0.10, 0.10, 0.10), (0.80, 0.10, 0.10), (0.80, 0.60, 0.50), False),  # cpu .90 > .80
    ],
)
def test_no_resource_may_be_higher_and_one_must_be_lower(destination, usage, source, yes):
    assert feasible(shares(*destination), shares(*usage), shares(*source)) is yes


PLACE = {"a1": "A", "b1": "A", "a2": "B", "c1": "C"}
GROUP = {"a1": "a", "b1": "b", "a2": "a", "c1": "c"}
USAGE = {"a1": {"cpu": 50}, "b1": {"cpu": 40}, "a2": {"cpu": 10}, "c1": {"cpu": 20}}


def plan(candidates, limit, **changes):
    given = {"place": PLACE, "group": GROUP, "usage": USAGE, "hosts": "ABC", **changes}
    return [(m.replica, m.source, m.destination) for m in planned(candidates, limit=limit, **given)]


@pytest.mark.parametrize(
    ("candidates", "limit", "moves"),
    [
        (("a1", "b1"), 1, [("a1", "A", "C")]),  # B holds the other copy of a; C: 20 + 50 < 90
        (("a1", "b1"), 0, [("a1", "A", "C")]),  # afterwards b1 to B: 50 > 40; to C: 110 > 40
        (("b1", "a1"), 0, [("b1", "A", "B")]),  # then A = 50, B = 50, C = 20; a1: B forbidden, C 70 > 50
        ((), 1, []),
    ],
)
def test_plans_are_greedy(candidates, limit, moves):
    assert plan(candidates, limit) == moves


def test_who_finds_no_place_is_skipped_and_the_next_is_tried():
    usage = {**USAGE, "a1": {"cpu": 90}, "b1": {"cpu": 10}}
    assert plan(("a1", "b1"), 1, usage=usage) == [("b1", "A", "B")]  # a1: B forbidden, C 110 > 100


def test_what_is_planned_counts_for_those_that_follow():
    place = {"p": "A", "q": "A", "r": "A"}
    usage = {name: {"cpu": 30} for name in place}
    moves = plan("pqr", 0, place=place, group={n: n for n in place}, usage=usage)
    assert moves == [("p", "A", "B"), ("q", "A", "C")]


def test_equal_hosts_are_taken_by_name_and_the_least_loaded_first():
    place = {"p": "A", "q": "A", "r": "B"}
    usage = {"p": {"cpu": 50}, "q": {"cpu": 50}, "r": {"cpu": 10}}
    group = {n: n for n in place}
    assert plan("p", 1, place=place, group=group, usage=usage) == [("p", "A", "C")]
    assert plan("p", 1, place=place, group=group, usage=usage, hosts="DCAB") == [("p", "A", "C")]


def test_a_candidate_on_a_host_that_is_not_known_stays():
    assert plan(("a1", "b1"), 0, hosts="BC") == []


def test_shares_of_hosts_of_different_size_are_compared():
    place, usage = {"p": "A", "q": "A"}, {"p": {"cpu": 1.0}, "q": {"cpu": 1.0}}
    group = {"p": "p", "q": "q"}

    def moved(cores):
        return planned("p", place, group, usage, "AB", 1, {"A": {"cpu": 2.0}, "B": {"cpu": cores}})

    assert moved(1.0) == []  # one of one processor is as full as two of two
    (move,) = moved(4.0)
    assert (move.before, move.after) == (("cpu", 1.0), ("cpu", 0.25))
