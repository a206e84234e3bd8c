"""At the start of a chain no unit takes the slots of those that have no figures yet."""

from __future__ import annotations

import pytest

from esault.sim import Model, Operator, Source, simulate


@pytest.mark.parametrize("slots", [16, 24])
def test_all_units_of_a_chain_grow_in_the_first_seconds(slots):
    parts = [
        Source("in", lambda now: 200.0),
        *(Operator(f"u{i}", (f"u{i - 1}" if i else "in",), 0.02) for i in range(3)),
    ]
    run = simulate(Model(parts, slots=slots), "auto", seconds=20.0)
    for each in run.operators.values():
        assert max(width for at, width in each.trace if at < 3.0) >= 5  # 200 of 20 ms are work for four
    assert (
        run.latency.percentile(0.99) < 1.5
    )  # 5 s where the first takes eleven slots, and the last waits for what is left
