"""A budget that cannot be: refused before anything starts, with the numbers."""

from __future__ import annotations

import pytest

from esault import Bolt, Topology, UsageError, by_key
from esault.elasticity.budget import Budget, unpriced
from esault.runtime.session.budget_check import check_budget
from esault.runtime.session.plan_check import check_plan
from esault.sources import Items


class Count(Bolt):
    def process(self, key, value):
        pass


def plan():
    t = Topology("words")
    lines = t.spout("lines", Items([]), parallelism=2)
    lines.bolt("count", Count, by_key(), parallelism=3, min_parallelism=2).bolt("sum", Count, by_key())
    return t.plan()


@pytest.mark.parametrize(
    ("budget", "parallelism", "said"),
    [
        (4, {}, "words cannot run within a budget of 4 sub-units: it takes 5 at the least"),
        (5, {}, r"takes 6 sub-units to start and the budget is 5: .*\(--parallelism UNIT=N; 5 is the least\)"),
        (6, {"sum": 4}, "takes 9 sub-units to start and the budget is 6"),
        (-1, {}, "a budget of -1 is none: it is above 0"),
    ],
)
def test_it_is_refused(budget, parallelism, said):
    with pytest.raises(UsageError, match=said):
        check_plan(plan(), 16, parallelism, budget=Budget(budget))


@pytest.mark.parametrize(
    ("hourly", "needed", "said"),
    [
        (0.4, 6, "cannot run within a budget of 0.4/h, which buys 4 slots of these hosts: it takes 5 at the least"),
        (
            0.6,
            6,
            r"takes 6 sub-units to start and the budget is 0.6/h, which buys 5 slots of these hosts: .* say --budget 0.8/h",
        ),
    ],
)
def test_money_that_does_not_buy_enough_is_refused_with_what_would(hourly, needed, said):
    prices = [(0.2, 9), (0.1, 4)]
    with pytest.raises(UsageError, match=said):
        check_budget(plan(), Budget(hourly=hourly), needed, prices)
    check_budget(plan(), Budget(hourly=0.8), needed, prices)


def test_money_buys_nothing_where_slots_have_no_price():
    with pytest.raises(
        UsageError, match="slots of this machine have no price; name hosts .* by --hosts, or say --budget N"
    ):
        check_budget(plan(), Budget(hourly=1.0), 1)
    assert "--slot-price" in unpriced("b")


@pytest.mark.parametrize(("budget", "needed"), [(0, 99), (6, 6), (7, 6)])
def test_what_is_enough_passes(budget, needed):
    check_budget(plan(), Budget(budget), needed)
