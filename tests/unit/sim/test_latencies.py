"""Latencies of fluid amounts, and random arrivals."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.sim.latencies import LEAST, Latencies
from esault.sim.modelled_source import arrivals

AMOUNTS = st.lists(st.tuples(st.floats(0, 9), st.floats(0, 100), st.floats(0.1, 50)), min_size=1, max_size=20)


@given(rows=AMOUNTS, share=st.floats(0.01, 1.0))
def test_figures_are_those_of_all_amounts_to_two_percent(rows, share):
    found = Latencies()
    for row in rows:
        found.add(*row)
    counted = sorted((max(seconds, LEAST), amount) for _, seconds, amount in rows)
    whole = sum(amount for _, amount in counted)
    assert found.count == pytest.approx(whole)
    assert found.mean == pytest.approx(sum(seconds * amount for seconds, amount in counted) / whole)
    assert found.most == counted[-1][0]
    near = 1.021
    below = sum(amount for seconds, amount in counted if seconds <= found.percentile(share) * near)
    assert below >= share * whole - 1e-6
    above = sum(amount for seconds, amount in counted if seconds >= found.percentile(share) / near)
    assert above >= (1 - share) * whole - 1e-6
    for second, (amount, total, most) in found.seconds.items():
        of = [(max(s, LEAST), a) for at, s, a in rows if int(at) == second]
        assert (amount, total) == pytest.approx((sum(a for _, a in of), sum(s * a for s, a in of)))
        assert most == max(s for s, _ in of)


def test_of_nothing_there_are_no_figures():
    none = Latencies()
    assert math.isnan(none.mean) and math.isnan(none.percentile(0.5)) and math.isnan(none.below(1.0))


def test_the_share_that_took_less():
    found = Latencies()
    found.add(0.0, 0.1, 3.0)
    found.add(0.0, 10.0, 1.0)
    assert [found.below(seconds) for seconds in (0.01, 1.0, 100.0)] == [0.0, 0.75, 1.0]


@pytest.mark.parametrize(("mean", "burst"), [(5.0, 1.0), (300.0, 1.0), (300.0, 64.0), (0.3, 1.0)])
def test_arrivals_scatter_around_their_mean_in_whole_bursts(mean, burst):
    order = random.Random(7)
    drawn = [arrivals(order, mean, burst) for _ in range(4000)]
    deviation = math.sqrt(mean * burst)  # of a sum of bursts that come independently
    assert sum(drawn) / len(drawn) == pytest.approx(mean, abs=5 * deviation / math.sqrt(len(drawn)))
    spread = math.sqrt(sum((each - mean) ** 2 for each in drawn) / len(drawn))
    assert spread == pytest.approx(deviation, rel=0.1)
    assert min(drawn) >= 0.0
    if mean / burst <= 40:
        assert all(each % burst == 0 for each in drawn)


def test_without_bursts_arrivals_are_their_mean():
    assert arrivals(random.Random(), 3.5, 0) == 3.5
    assert arrivals(random.Random(), -1.0, 0) == arrivals(random.Random(), 0.0, 2.0) == 0.0
