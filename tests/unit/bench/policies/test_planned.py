"""The plan beside live runs: what is counted of a report, and that the topology gives what it says."""

from __future__ import annotations

import time

import pytest

from bench.policies.planned import lines, width
from bench.policies.planned_topology import LITTLE, LOADS, topology
from esault.testing import LocalRuntime


def test_sub_units_of_several_units_are_counted_over_time():
    assert width([[(0.0, 1)]], 10.0) == (1.0, 1)
    assert width([[(0.0, 1), (5.0, 3)], [(0.0, 2), (8.0, 1)]], 10.0) == pytest.approx((2.0 + 1.8, 5))
    assert width([[(0.0, 1), (2.0, 4), (3.0, 1)], [(0.0, 1), (4.0, 3)]], 10.0)[1] == 5  # not both at their most


@pytest.mark.parametrize(("load", "out", "each"), [("chain", "store", 1), ("words", "count", 8), ("calls", "call", 1)])
def test_each_topology_hands_all_on(monkeypatch, load, out, each):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    local = LocalRuntime(topology(load, little=True))
    local.run_until_drained()
    assert len(local.emitted(out)) == LITTLE * each
    assert topology(load).plan().units["in"].spout is not None and sum(LOADS[load]) > LITTLE


def test_a_live_figure_is_told_beside_the_span_of_the_plan():
    trials = [{"p99": p99, "mean": 5.0, "most": 9, "changes": 3} for p99 in (0.5, 0.4, 0.9)]
    run = {"mean": 6.0, "most": 9, "changes": 3, "amiss": 0, "loads": [1.0, 4.0]}
    case = {"load": "calls", "planned": trials, "live": [{"p99": 0.7, **run}, {"p99": 1.2, **run}]}
    told = "\n".join(lines({"cases": [case]}))
    assert "load average 1.0 to 4.0; 0 tuples" in told
    assert "planned 0.5 (0.4 to 0.9), live 0.7 1.2; 1 of 2 within" in told
    assert "planned 5 (5 to 5), live 6 6; 0 of 2 within" in told
