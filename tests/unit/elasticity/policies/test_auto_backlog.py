"""`auto` where much waits: it keeps what works it off until it is gone, and grows no unit that another one holds up."""

from __future__ import annotations

from run_views import run as view

from esault.elasticity.policies.auto import Auto
from esault.elasticity.view import ProbeSample
from esault.sim import Model, Operator, Source, simulate


def backlog(t):
    """Two hundred thousand tuples at once, and then work for two sub-units of 4 ms."""
    return 200_000.0 if t < 1 else 500.0


def test_what_works_off_a_backlog_stays_until_it_is_gone():
    model = Model(
        [Source("in", backlog, max_pending=2000), Operator("count", ("in",), 0.004, keys=[1.0] * 1000)], slots=24
    )
    run = simulate(model, "auto", seconds=60, seed=1)
    trace = run.operators["count"].trace
    assert [n for _, n in trace[:2]] == [1, 24] and trace[-1][1] <= 4
    waited = {round(t): waits for t, _, _, waits in run.operators["count"].series}
    assert len(trace) == 3 and waited[int(trace[-1][0])] < 500, "it shrinks once, when nothing waits any more"
    assert run.latency.percentile(0.99) < 36  # work for 33 s


def test_why_they_stay_is_said():
    policy = Auto()
    source = {"arrivals": 100.0, "emitted": 100.0, "rates": True, "lag": 0.0, "lag_before": 0.0}
    count = {"width": 4, "arrivals": 100.0, "processed": 100.0, "busy": 0.4, "rates": True, "waiting": 1500.0}
    for look in range(1, 9):
        said = policy.decide(view(0.25 * look, {"in": source, "count": count}, {"count": ("in",)}, 0.25))
    (only,) = said
    assert only.reason.endswith("; 1 is enough, and the others work off the 1,500 that wait")


def test_a_unit_does_not_grow_for_what_those_behind_it_cannot_take():
    model = Model(
        [
            Source("in", lambda t: 1000.0, max_pending=2000),
            Operator("a", ("in",), 0.0005, most=20),
            Operator("split", ("a",), 0.0008, most=20),
            Operator("count", ("split",), 0.003, most=2),
        ],
        slots=64,
    )
    run = simulate(model, "auto", seconds=60, seed=1)
    assert run.lag > 10_000, "count is full"
    assert {name: max(n for _, n in each.trace) for name, each in run.operators.items()} == {
        "a": 1,
        "split": 1,
        "count": 2,
    }


def test_a_chain_that_works_off_a_backlog_does_not_swing():
    model = Model(
        [
            Source("in", backlog, max_pending=2000),
            Operator("split", ("in",), 0.0005),
            Operator("count", ("split",), 0.004),
        ],
        slots=24,
    )
    run = simulate(model, "auto", seconds=60, seed=1)
    assert run.changes <= 15
    assert run.lag + run.operators["count"].waiting < 1000


def test_why_tuples_wait_although_there_are_enough_is_not_kept_quiet():
    """As for calls that wait for one another, which takes no sub-unit any time."""
    policy = Auto()
    source = {"arrivals": 10.0, "emitted": 10.0, "rates": True, "lag": 0.0, "lag_before": 0.0}
    for look in range(1, 20):
        now = 0.25 * look
        late = (ProbeSample(look, now - 0.25), ProbeSample(look, now - 0.25, now))
        work = {"arrivals": 10.0, "processed": 10.0, "busy": 0.1, "rates": True, "samples": [{"probes": late}]}
        said = policy.decide(view(now, {"in": source, "work": work}, {"work": ("in",)}, 0.25))
    assert said[0].reason.endswith("; 1 is enough, and yet 100% of the probes were late")
