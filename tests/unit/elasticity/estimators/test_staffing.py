"""The number of sub-units that a load takes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.estimators.staffing import enough

rates = st.floats(0, 5000)
services = st.floats(1e-6, 0.01)
shares = st.floats(0.3, 0.95)


@given(rates, services, shares, st.floats(0, 1), st.floats(0, 50))
def test_none_is_busier_than_said(rate, service, most_busy, latency, burst):
    n = enough(rate, service, most_busy, latency, burst)
    assert n >= 1 and rate * service / n <= most_busy * (1 + 1e-5) + 1e-6


@given(rates, services, shares, st.floats(0, 1), st.floats(1, 50), st.floats(1, 3))
def test_more_load_shorter_waits_and_longer_bursts_never_take_fewer(rate, service, most_busy, latency, burst, more):
    n = enough(rate, service, most_busy, latency, burst)
    assert enough(rate * more, service, most_busy, latency, burst) >= n
    assert enough(rate, service, most_busy, latency / more, burst) >= n
    assert enough(rate, service, most_busy, latency, burst * more) >= n


@pytest.mark.parametrize(("rate", "n"), [(0.0, 1), (70.0, 1), (71.0, 2), (700.0, 10)])
def test_where_waits_do_not_matter_the_work_decides(rate, n):
    assert enough(rate, 0.01, 0.7, math.inf) == n
