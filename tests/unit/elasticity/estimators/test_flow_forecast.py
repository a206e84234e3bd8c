"""The next seconds of a queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.estimators.flow_forecast import STEP, outflow, sized

flows = st.lists(st.floats(0, 1000), max_size=30)


@given(flows, st.floats(0, 1000), st.floats(0, 500), st.floats(0, 500), st.floats(0, 8))
def test_what_comes_is_processed_or_waits(inflow, waiting, before, after, ready):
    processed, queue = outflow(inflow, waiting, before, after, ready)
    assert len(processed) == len(queue) == len(inflow)
    held = waiting
    for rate, done, left in zip(inflow, processed, queue):
        assert 0 <= done <= max(before, after) + 1e-6 and left >= 0
        assert held + rate * STEP == pytest.approx(done * STEP + left, abs=1e-6)
        held = left


@given(
    flows, st.floats(0, 500), st.integers(1, 5), st.floats(1, 100), st.floats(0, 3), st.floats(0, 5), st.floats(0, 1)
)
def test_it_is_enough_and_one_fewer_is_not(inflow, waiting, width, one, ready, by, latency):
    def late(n):
        _, queue = outflow(inflow, waiting, width * one, n * one, 0.0 if n == width else ready)
        return any(q > latency * n * one for i, q in enumerate(queue) if (i + 1) * STEP >= by)

    n = sized(inflow, waiting, width, one, ready, by, latency, 12)
    assert width <= n <= 12
    assert n == 12 or not late(n)
    assert n == width or late(n - 1)


def test_the_new_capacity_serves_from_when_it_is_ready():
    processed, _ = outflow([100.0] * 8, 0.0, 10.0, 50.0, 4 * STEP)
    assert processed == [10.0] * 4 + [50.0] * 4
