"""`auto` and a unit for which nothing comes: it gives back what it began with, and a budget is divided among the others."""

from __future__ import annotations

from esault.sim import Model, Operator, Source, simulate


def model(width, rate=1000.0):
    return Model(
        [
            Source("in", lambda t: rate, max_pending=2000),
            Operator("first", ("in",), 0.004, keys=[1.0] * 1000),
            Operator("second", ("first",), 0.004, keys=[1.0] * 1000),
            Operator("errors", ("second",), 0.004, selectivity=0.0),
            Operator("never", ("errors",), 0.004, width=width, keys=[1.0] * 100),
        ],
        slots=32,
    )


def test_it_gives_back_what_it_began_with():
    run = simulate(model(8, rate=10.0), "auto", seconds=40)
    ((at, _), (gone, left)) = run.operators["never"].trace
    assert (at, left) == (0.0, 1) and 30 < gone < 31
    said = [each.reason for each in run.decisions if each.unit == "never"]
    assert said == [
        "nothing has come for it for 2 s; 1 is enough after 30 s",
        "nothing has come for it for 30 s",
        "nothing has come for it; 1 is enough",
    ]


def test_one_that_has_its_least_keeps_it():
    run = simulate(model(1, rate=10.0), "auto", seconds=40)
    assert run.operators["never"].changes == []


def test_a_budget_is_divided_among_those_that_have_something_to_do():
    run = simulate(model(1), "auto", seconds=40, budget=12)
    widths = {name: each.trace[-1][1] for name, each in run.operators.items()}
    assert sum(widths.values()) == 11 and widths["never"] == 1
    assert max(widths.values()) - min(n for name, n in widths.items() if name != "never") <= 1
    assert any("the budget of 12 is spent, and " in each.reason for each in run.decisions)
