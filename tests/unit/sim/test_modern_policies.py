"""ds2, flink, dhalion and hpa in the simulator: a chain that is far too narrow, and then far too wide."""

from __future__ import annotations

import pytest

from esault.sim import Model, Operator, Source, simulate
from esault.sim.load_shapes import Steps

FAST_FLINK = (
    "flink:reconcile_interval=2,metrics_window=4,stabilization_interval=2,scale_down_interval=6,"
    "catch_up_duration=20,restart_time=1"
)
FAST = {
    "ds2": "ds2:policy_interval=2,warm_up_time=1",
    "flink": FAST_FLINK,
    "dhalion": "dhalion:interval=2,wait=4",
    "hpa": "hpa:sync_period=2,policy_period=2,scale_down_stabilization_window=6",
}


def chain(rate, **widths):
    """src -> split (2 out of 1, 50/s each) -> count (50/s each)."""
    return Model(
        [
            Source("src", rate=rate, burst=0, max_pending=200),
            Operator("split", ("src",), 0.02, width=widths.get("split", 1), most=20, selectivity=2.0),
            Operator("count", ("split",), 0.02, width=widths.get("count", 1), most=20),
        ]
    )


def test_ds2_needs_one_step():
    run = simulate(chain(lambda t: 220.0), FAST["ds2"], seconds=20)
    assert {n: [w for _, w in o.trace] for n, o in run.operators.items()} == {"split": [1, 5], "count": [1, 9]}


@pytest.mark.parametrize("name", FAST)
def test_each_keeps_up_in_the_end_and_shrinks_after(name):
    load = Steps((0.0, 100.0), (220.0, 20.0), 300.0)
    run = simulate(chain(load), FAST[name], seconds=200)
    split, count = run.operators["split"], run.operators["count"]
    assert max(w for _, w in split.trace) >= 5
    assert max(w for _, w in count.trace) >= 9
    assert run.lag + split.waiting + count.waiting < 100
    assert count.trace[-1][1] <= 5, count.trace
    assert not run.notices, run.notices
