from __future__ import annotations

import pytest


@pytest.mark.parametrize(("policy", "widths"), [("none", {2}), ("esault", set(range(1, 10)))])
def test_the_papers_bursts_are_served_by_as_many_as_the_policy_says(policy, widths):
    from bench.elastic.shape import Shape
    from bench.elastic.simulated import simulated
    from bench.elastic.topology import BURST, bursts

    times = [at for at, _ in zip(bursts(Shape(), seed=1), range(400)) if at < 15]
    run, seen, trace = simulated(policy, times, 20.0, seed=1)
    assert sum(n for _, n, _, _ in seen) == pytest.approx(len(times) * BURST, rel=0.02)
    assert trace[0] == (0.0, 2)
    assert {n for _, n in trace} <= widths
    assert run.changes == len(trace) - 1


def test_a_trial_is_simulated_with_its_figures():
    from bench.policies.live import simulated, words

    found = simulated("none", words(12.0, 1), 1)
    assert found["trace"] == [(0.0, 2)]
    assert found["figures"]["average_parallelism"] == 2
    assert found["figures"]["p99_ms"] > 0
