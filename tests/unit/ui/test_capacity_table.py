"""A capacity plan in words."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.elasticity.objective import LatencyObjective
from esault.sim.capacity_plan import Candidate, Outcome, Trial, Variation
from esault.sim.model import Timing
from esault.sim.unit_profile import UnitProfile
from esault.ui.capacity_table import changing, conclusion, measured, plain, table

PROFILES = (
    UnitProfile("lines", "spout", (), 0, 100, 100, 0.0, 1),
    UnitProfile("more", "spout", (), 0, 100, 300, 0.0, 1),
    UnitProfile("count", "bolt", ("lines", "more"), 200, 200, 50, 0.5, 2),
    UnitProfile("idle", "bolt", ("count",), 0, 0, 0, 0.0, 1),
)
NAN = float("nan")


def trial(kept=True, mean=2.0, p99=0.05, most=3, changes=1):
    return Trial(p99, kept, 0, mean, most, changes, 0.0, 0.0)


def planner(objective="p99 < 100 ms", trials=(Variation(1.0, 1), Variation(1.2, 1), Variation(1.0, 2))):
    read = None if objective is None else LatencyObjective.parse(objective)
    return SimpleNamespace(
        scenario=SimpleNamespace(objective=read, profiles=PROFILES, slots=8, budget=False),
        trials=trials,
        too_narrow=dict,  # no unit is
    )


AUTO = Outcome(Candidate("auto", {}), (trial(), trial(mean=1.5, p99=0.2, most=5, kept=False)))
FIXED = Outcome(Candidate("none", {"count": 3}), (trial(mean=3.0, p99=NAN), trial(mean=3.0)))


def test_of_each_bolt_what_a_tuple_takes_and_how_many_come_and_go():
    assert list(measured(PROFILES)) == [
        "  count  2.5 ms a tuple; gets 0.5 for each of lines and more, emits 0.25 for each that it gets"
    ]


def test_each_candidate_has_a_line_with_the_least_and_the_most_of_its_trials():
    assert list(table(planner(), [AUTO, FIXED], spouts=2, slots=4, price=None)) == [
        "                kept in  p99                      sub-units     at most  changes  hosts of 4",
        "auto            1 of 2   50 ms (50 ms to 200 ms)  2 (1.5 to 2)  5        1        2",
        "always count=3  2 of 2   -                        3             3        1        2",
    ]


def test_with_a_price_it_says_what_an_hour_costs_and_without_an_objective_nothing_of_it():
    head, row = table(planner(None), [FIXED], spouts=1, slots=2, price=0.5)
    assert head.split()[0] == "p99" and head.endswith("hosts of 2  cost an hour")
    assert row.split() == ["always", "count=3", "-", "3", "3", "1", "2", "2"]


@pytest.mark.parametrize(("seconds", "said"), [(2.0, "2 s"), (0.0123, "12.3 ms"), (0.0000123, "12.3 us")])
def test_times_have_the_unit_that_fits(seconds, said):
    outcome = Outcome(Candidate("auto", {}), (trial(p99=seconds),))
    assert said in list(table(planner(), [outcome], 1, 1, None))[1]


def test_the_one_to_take_keeps_the_objective_in_all_trials_with_the_fewest_sub_units():
    more = Outcome(Candidate("none", {"count": 9}), (trial(mean=9.0), trial(mean=9.0)))
    assert list(conclusion(planner(), [more, AUTO, FIXED])) == [
        "Each was simulated 3 times: with 2 seeds, and with tuples that take 20% more, and less by as much.",
        "p99 < 100 ms is kept in all of them by always count=3, with the fewest sub-units on average.",
    ]


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        ("p99 < 100 ms", "More --slots than 8 may help, or a later objective."),
        ("p99 < 1 ms", "A tuple of count alone takes 2.5 ms: more sub-units do not help."),
    ],
)
def test_where_none_keeps_it_what_may_help_is_said(objective, said):
    lines = list(conclusion(planner(objective, (Variation(1.0, 1),)), [AUTO]))
    assert lines == ["Each was simulated 1 time: with 1 seed.", f"{objective} is kept by none in all of them.", said]


def test_without_an_objective_one_is_asked_for():
    assert list(conclusion(planner(None), [AUTO]))[1:] == ["Say --objective 'p99 < 100 ms' to see what keeps it."]


@pytest.mark.parametrize(("price", "cost"), [(None, None), (0.5, 2.0)])
def test_as_plain_values_what_is_not_known_is_none(price, cost):
    found = dict(plain(FIXED, spouts=1, slots=2, price=price))
    trials = found.pop("trials")
    assert found == {
        "policy": "none",
        "widths": {"count": 3},
        "kept": 2,
        "keeping_up": 2,
        "hosts": 2,
        "cost_an_hour": cost,
    }
    assert [each["p99"] for each in trials] == [None, 0.05]


@pytest.mark.parametrize(
    ("changes", "growths", "said"),
    [
        (0, 0, "serves after 300 ms; moved keys wait 20 ms (assumed: that run had no change)"),
        (
            2,
            0,
            "serves after 300 ms (assumed: that run started none); moved keys wait 20 ms (as in 2 changes of that run)",
        ),
        (3, 2, "serves after 300 ms; moved keys wait 20 ms (as in 3 changes of that run)"),
    ],
)
def test_what_was_not_measured_is_said_to_be_assumed(changes, growths, said):
    assert changing(Timing(), changes, growths) == f"  a new sub-unit {said}"


def test_what_is_too_short_to_be_told_is_not_told_as_nothing():
    assert "moved keys wait less than 1 ms" in changing(Timing(move=0.0), 2, 1)
