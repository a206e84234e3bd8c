"""A budget that cannot be: refused before anything starts, with the numbers."""

from __future__ import annotations

import pytest

from esault import Bolt, Topology, UsageError, by_key
from esault.runtime.session.session import check_budget, check_plan
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
        (-1, {}, "a budget of -1 sub-units is none"),
    ],
)
def test_it_is_refused(budget, parallelism, said):
    with pytest.raises(UsageError, match=said):
        check_plan(plan(), 16, parallelism, budget=budget)


@pytest.mark.parametrize(("budget", "needed"), [(0, 99), (6, 6), (7, 6)])
def test_what_is_enough_passes(budget, needed):
    check_budget(plan(), budget, needed)
