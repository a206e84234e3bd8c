"""A budget: never more sub-units than it allows, divided by `auto` where tuples wait most."""

from __future__ import annotations

import pytest

from esault.sim import Model, Operator, Source, simulate

KEYS = [1.0] * 200
#: the slow one of the chain changes at 30 s
TURN = 30.0


def chain(slow=(4.0, 1.0)):
    """Work for 2.4 and 0.6 sub-units, the other way round after `TURN`."""
    first, then = slow
    return Model(
        [
            Source("in", lambda t: 600.0, max_pending=2000.0),
            Operator("parse", ("in",), 0.001, keys=KEYS, pace=lambda t: first if t < TURN else then),
            Operator("count", ("parse",), 0.001, keys=KEYS, pace=lambda t: then if t < TURN else first),
        ]
    )


def held(run):
    """The most sub-units at any time, the source's one among them."""
    steps = sorted((at, name, n) for name, one in run.operators.items() for at, n in one.trace)
    widths, most = dict.fromkeys(run.operators, 0), 0
    for _, name, n in steps:
        widths[name] = n
        most = max(most, 1 + sum(widths.values()))
    return most


@pytest.mark.parametrize("policy", ["auto", "ds2:policy_interval=1,warm_up_time=1", "probe"])
def test_no_policy_goes_beyond_it(policy):
    run = simulate(chain(), policy, seconds=20, budget=4)
    assert held(run) <= 4
    assert max(n for _, n in run.operators["parse"].trace) > 1  # what there is is used


def test_one_gives_to_the_other_when_the_work_moves():
    run = simulate(chain(), "auto", seconds=60, budget=5)
    at_turn = [n for at, n in run.operators["parse"].trace if at < TURN][-1]
    assert (at_turn, run.operators["count"].trace[-1][1], run.operators["parse"].trace[-1][1]) == (3, 3, 1)
    assert held(run) == 5
    assert run.lag < 600.0  # it has caught up
    gave = [d for d in run.decisions if d.unit == "parse" and d.at > TURN and d.what.startswith("rescale: 3")]
    assert gave


def test_that_it_is_spent_and_what_would_do_is_said():
    run = simulate(chain(slow=(4.0, 4.0)), "auto", seconds=20, budget=4)
    reasons = [d.reason for d in run.decisions if d.what == "no change" and "budget" in d.reason]
    # 2.4 sub-units' work each, busy for 80 %, or for less while the rate is not known well; and one for the source
    assert reasons
    assert all("the budget of 4 is spent, and " in reason for reason in reasons)
    assert int(reasons[-1].split(" is spent, and ")[1].split()[0]) in (8, 9), reasons


def test_one_that_is_large_enough_changes_nothing():
    with_it, without = (simulate(chain(), "auto", seconds=20, budget=budget) for budget in (40, None))
    assert [(d.at, d.what) for d in with_it.decisions] == [(d.at, d.what) for d in without.decisions]


def test_a_unit_with_one_key_takes_no_part_that_others_need():
    model = Model(
        [
            Source("one", lambda t: 60.0, max_pending=2000.0),
            Operator("late", ("one",), 0.1, keys=[1.0], most=24),
            Source("many", lambda t: 40.0),
            Operator("quick", ("many",), 0.1, keys=[1.0] * 500, most=24),
        ],
        slots=24,
    )
    run = simulate(model, "auto", seconds=40, budget=8)
    widths = {name: [n for _, n in run.operators[name].trace] for name in ("late", "quick")}
    assert max(widths["late"]) == 1
    assert widths["quick"][-1] >= 5
