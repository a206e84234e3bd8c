"""Buffers that are smaller than what comes in a step."""

from __future__ import annotations

import pytest

from esault.sim import Model, Operator, Source, simulate


@pytest.mark.parametrize("keys", [(), [1.0] * 200])
def test_what_can_be_processed_while_it_comes_is_not_dropped(keys):
    # 100 tuples a step of 0.02 s, room for 50, and servers for 6 000/s
    work = Operator("work", ("in",), 0.002, 12, buffer=50, keys=keys, most=12)
    run = simulate(Model([Source("in", lambda t: 5000.0, burst=0.0), work]), seconds=5)
    # with keys the shares of the sub-units differ: a few have more than their part
    assert run.operators["work"].dropped <= (0 if not keys else 0.1 * 25000)
    assert run.operators["work"].waiting <= 50


def test_what_is_too_much_is_dropped_exactly():
    work = Operator("work", ("in",), 0.002, 2, buffer=50)
    run = simulate(Model([Source("in", lambda t: 5000.0, burst=0.0), work]), seconds=5, step=0.05).operators["work"]
    assert run.processed == pytest.approx(1000 * 5)
    assert run.dropped == pytest.approx(4000 * 5 - 50)
