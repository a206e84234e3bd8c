"""When policies are asked."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import Bolt, Topology, by_key
from esault.elasticity.scaling import SLACK, Scaling
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
