"""The policy auto under an objective, on modelled queues: the fewest sub-units that keep it, and one unit is not another's want."""

from __future__ import annotations

import pytest

from esault import UsageError
from esault.sim import Model, Operator, Source, simulate


def model(slots=64, burst=1.0):
    return Model(
        [
            Source("in", lambda t: 1000.0, burst=burst),
            Operator("first", ("in",), 0.001),
            Operator("second", ("first",), 0.003),
            Operator("third", ("second",), 0.0005),
        ],
        slots=slots,
    )


def run(*objectives, **of_model):
    return simulate(model(**of_model), "auto", seconds=60, objectives=objectives)


def test_a_strict_one_costs_more_and_is_kept():
    strict, lax = run("p99 < 20 ms"), run("p99 < 2 s")
    assert strict.objectives[0].recent_burn_rate < 1 < lax.latency.percentile(0.99) / 0.02
    assert strict.worker_seconds > lax.worker_seconds
    assert lax.objectives[0].kept
    assert lax.objectives[0].tuples == pytest.approx(lax.latency.count, abs=1)


def test_where_slots_are_short_the_last_unit_has_what_it_needs():
    # 1 + 3 + 0.5 busy, and room for short waits would take more than all
    short = run("p99 < 5 ms", slots=8, burst=10.0)
    widths = {name: each.trace[-1][1] for name, each in short.operators.items()}
    assert sum(widths.values()) <= 8
    assert widths["second"] >= 4 and widths["third"] >= 1
    assert short.lag + sum(each.waiting for each in short.operators.values()) < 200


def test_one_unit_s_alone_is_refused():
    with pytest.raises(UsageError, match="'second' alone cannot be simulated"):
        run("second=p99 < 20 ms")
