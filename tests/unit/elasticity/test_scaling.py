"""When policies are asked."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import Bolt, Topology, by_key
from esault.elasticity.scaling import FIRST, FIRST_EVERY, SLACK, Scaling
from esault.elasticity.totals import Totals
from esault.elasticity.view import UnitView
from esault.messages.status import Status, SubUnitCounts
from esault.sources import TextFiles


class Windows:
    """Looks at windows, and notes when."""

    def __init__(self, period):
        self.period = period
        self.asked = []

    def decide(self, view):
        self.asked.append(view.now)
        return ()


class Ticks:
    """Looks at samples, as probes come."""

    def decide(self, view):
        return ()


class Count(Bolt):
    def process(self, key, value):
        pass


def scaling(policy) -> Scaling:
    t = Topology("t")
    t.spout("in", TextFiles("none.txt")).bolt("count", Count, grouping=by_key())
    return Scaling(t.plan(), {"": policy}, 0.1, print)


@given(st.floats(0.1, 5.0), st.floats(0.0, 1e5))
def test_who_looks_when_it_is_told_looks_once_at_each_window_as_soon_as_its_reports_are_there(period, began):
    policy = Windows(period)
    judged, now = scaling(policy), began
    for _ in range(8):
        judged.decide({}, now, now - began, (), lambda: 0)
        # A little later than was said, as clocks of machines have it.
        now = judged.next_look + 1e-6 * period
    ends = [math.floor((at - SLACK) / period + 1e-4) * period for at in policy.asked]
    assert len(ends) >= 5
    assert [b - a for a, b in pairwise(ends)] == pytest.approx([period] * (len(ends) - 1), rel=1e-3)
    assert [at - end for at, end in zip(policy.asked, ends)][1:] == pytest.approx([SLACK] * (len(ends) - 1), abs=1e-3)


def test_who_does_not_look_at_windows_is_not_waited_for():
    assert scaling(Ticks()).next_look == math.inf
    assert scaling("none").next_look == math.inf


class First(Windows):
    """Looks at the first moments, too, and notes when, and at what."""

    def decide_first(self, view, firsts):
        self.asked.append((view.now, sorted(firsts)))
        return ()


class Seen:
    """Stands for what the runtime knows of units."""

    def forget(self, living):
        pass

    def totals(self, unit, at):
        return Totals()

    def unit(self, unit, spouts, now, window, consume):
        return UnitView(unit.name, unit.plan, (), False, spouts=spouts)


class Unit:
    """A unit of one sub-unit."""

    def __init__(self, name, plan, number):
        self.name, self.plan, self.subs = name, plan, (number,)


def looks(policy, until):
    """A run whose two units report twenty times a second: the moments at which the policy looked, by the driver's ticks."""
    t = Topology("t")
    t.spout("in", TextFiles("none.txt")).bolt("count", Count, grouping=by_key())
    plan = t.plan()
    judged = Scaling(plan, {"": policy}, 0.1, print, samples=Seen())
    units = {name: Unit(name, unit, i) for i, (name, unit) in enumerate(plan.units.items())}
    began, reported = 1000.0, 0
    now = began
    while now < began + until:
        while reported * FIRST_EVERY <= now - began:
            for i in range(2):
                judged.status(Status(i, began + reported * FIRST_EVERY, SubUnitCounts(tuples_in=reported)))
            reported += 1
        judged.decide(units, now, now - began, (), lambda: 0)
        now = min(max(now + 0.001, judged.next_look), now + 0.1)
    return [(round(at - began, 2), names) for at, names in policy.asked]


def test_who_looks_at_the_first_moments_is_asked_each_time_that_sub_units_report_and_no_longer():
    asked = looks(First(100.0), 2.0)
    times = [at for at, _ in asked]
    assert times[0] == pytest.approx(0.12, abs=0.011)
    assert [b - a for a, b in pairwise(times)] == pytest.approx([FIRST_EVERY] * (len(times) - 1), abs=0.011)
    assert times[-1] <= FIRST
    assert {tuple(names) for _, names in asked} == {("count", "in")}


def test_reports_of_first_moments_are_asked_for_where_a_policy_looks_at_them():
    assert scaling(First(1.0)).looks_early
    assert scaling("auto").looks_early
    assert not scaling(Windows(1.0)).looks_early
    assert not scaling("none").looks_early
