"""The share of probes that took too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.estimators.late_probes import LateProbes
from esault.elasticity.view import ProbeSample, Sample


def told(*probes, sub_unit=1):
    """A view's sample; a probe is (number, sent) or (number, sent, back)."""
    return Sample(sub_unit, probes=tuple(ProbeSample(*probe) for probe in probes))


@given(
    probes=st.lists(st.tuples(st.floats(0, 5), st.floats(0.0, 3.0)), max_size=12), every=st.sampled_from([0.25, 1.0])
)
def test_each_probe_counts_once_however_views_lie_between(probes, every):
    """A probe is told when it is sent and when it comes back, perhaps both in one view."""
    late = LateProbes(1.0, 1000.0)
    ways = [(number, sent, sent + took) for number, (sent, took) in enumerate(sorted(probes), 1)]
    now = 0.0
    while now < 20.0:
        before, now = now, now + every
        new = [(n, sent) for n, sent, _ in ways if before <= sent < now]
        new += [(n, sent, back) for n, sent, back in ways if before <= back < now]
        late.observe([told(*new)], now)
    slow = sum(back - sent > 1.0 for _, sent, back in ways)
    assert late.share == (pytest.approx(slow / len(ways)) if ways else 0.0)


def test_one_that_is_out_for_too_long_is_late_before_it_is_back():
    late = LateProbes(1.0, 100.0)
    late.observe([told((1, 0.0), (2, 0.0), (2, 0.0, 0.5))], 0.6)
    assert late.share == 0.0
    late.observe([told()], 1.1)
    assert late.share == 0.5
    late.observe([told((1, 0.0, 9.0))], 9.0)
    assert late.share == 0.5, "it is not counted again"


def test_probes_of_sub_units_that_are_gone_and_those_of_long_ago_say_nothing():
    late = LateProbes(1.0, 10.0)
    late.observe([told((1, 0.0)), told((1, 0.0), sub_unit=2)], 0.1)
    late.observe([told()], 2.0)
    assert late.share == 1.0
    late.observe([told()], 11.9)
    assert late.share == 1.0
    late.observe([told((2, 11.9), (2, 11.9, 12.0))], 12.1)
    assert late.share == 0.0
    late.forget()
    assert late.share == 0.0
