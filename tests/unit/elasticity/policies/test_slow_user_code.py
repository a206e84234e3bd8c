"""Units whose tuples take long: `auto` and `probe` in the simulator, which tells of a slow tuple when it is over, as the engine does."""

from __future__ import annotations

import functools
from dataclasses import replace

import depth
import pytest
from run_views import run as view_of

from esault.elasticity.action import NoChange, Rescale
from esault.elasticity.policies.auto import Auto
from esault.elasticity.policies.probe import Probe
from esault.elasticity.view import ProbeSample, Sample, UnitView, View
from esault.sim import Model, Operator, Source, simulate
from esault.topology.grouping import by_key, shuffle
from esault.topology.plan import Input, UnitPlan

#: a jump from work for one sub-unit to work for six, and back
SERVICES = depth.chosen([0.001, 0.0125, 0.1, 1.0, 10.0], (0.001, 1.0))
RIVALS = ["ds2:policy_interval=2,warm_up_time=1", "hpa:sync_period=2,policy_period=2,scale_down_stabilization_window=6"]


@functools.cache
def jump(service, policy, seed=1):
    phase = max(30.0, 6 * service)

    def rate(t):
        return (6.0 if 0.5 * phase <= t < 1.5 * phase else 1.0) / service

    model = Model(
        [
            Source("in", rate, max_pending=2000.0),
            Operator("work", ("in",), service, keys=[1.0] * 500, most=24),
        ],
        slots=24,
    )
    return simulate(model, policy, seconds=2.5 * phase, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("service", SERVICES)
def test_auto_is_within_a_tenth_of_the_best_for_any_service(service):
    ours = jump(service, "auto")
    best = min(jump(service, rival).latency.percentile(0.99) for rival in [*RIVALS, "probe"])
    assert ours.latency.percentile(0.99) <= 1.1 * best
    assert ours.lag + ours.operators["work"].waiting <= 2000


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["auto", "probe"])
@pytest.mark.parametrize("service", SERVICES)
def test_a_unit_grows_to_what_its_work_takes(policy, service):
    run = jump(service, policy)
    assert max(n for _, n in run.operators["work"].trace) >= 6
    assert run.lag < 1e-6


@pytest.mark.parametrize("keys", [1, 3])
def test_it_does_not_grow_beyond_the_keys_that_there_are(keys):
    model = Model(
        [
            Source("in", lambda t: 60.0, max_pending=2000.0),
            Operator("work", ("in",), 0.1, keys=[1.0] * keys, most=24),
        ],
        slots=24,
    )
    run = simulate(model, "auto", seconds=40)
    assert max(n for _, n in run.operators["work"].trace) == keys


@pytest.mark.slow
def test_a_splitters_words_count_although_its_lines_are_few():
    model = Model(
        [
            Source("in", lambda t: 15.0),
            Operator("split", ("in",), 0.004, selectivity=100.0, most=12),
            Operator("count", ("split",), 0.002, keys=[1.0] * 500, most=24),
        ],
        slots=40,
    )
    shares = {p: simulate(model, p, seconds=60).latency.below(0.1) for p in ["auto", "probe", *RIVALS]}
    assert shares["auto"] >= 0.9 * max(shares.values())
    assert shares["auto"] > 0.8


def within_its_first_tuple(policy, seconds, sent=10.0, width=1, grouping=None):
    """One that was sent ten tuples and has told of nothing since; what is wanted at the last look."""
    wanted = []
    for i in range(round(seconds / 0.25)):
        now = 1000.0 + 0.25 * i
        probes = (ProbeSample(i + 1, now),)
        inputs = [Input("in", "in", grouping or shuffle())]
        unit = {"width": width, "inputs": inputs, "samples": [{"probes": probes, "age": now - 999.0}] * width}
        source = {"arrivals": sent, "emitted": sent, "lag": 0.0, "lag_before": 0.0}
        wanted = policy.decide(
            view_of(now, {"in": source, "work": unit}, {"work": ["in"]}, seconds=0.25, started=900.0)
        )
        if any(isinstance(a, Rescale) for a in wanted):
            return now - 1000.0, wanted
    return None, wanted


def test_one_that_is_full_and_late_grows_although_nothing_is_known_of_it():
    after, (action,) = within_its_first_tuple(Auto(), 10)
    assert isinstance(action, Rescale)
    assert action.n == 2
    assert 1.0 <= after <= 2.5
    assert "unknown what a tuple takes" in action.reason


def test_one_whose_keys_could_not_move_before_its_first_tuple_is_over_waits_for_that():
    after, (action,) = within_its_first_tuple(Auto(), 10, grouping=by_key())
    assert after is None
    assert "its keys can move when its first tuple is over" in action.reason


def test_one_that_nothing_waits_for_does_not():
    after, (action,) = within_its_first_tuple(Auto(), 10, sent=0.0)
    assert after is None
    assert isinstance(action, NoChange)
    assert action.cause == "unmeasured"


@pytest.mark.parametrize(("most", "slots", "cause"), [(2, 64, "its max_parallelism is 2"), (20, 3, "no slot is free")])
def test_what_keeps_a_unit_from_growing_is_told_once(most, slots, cause):
    model = Model([Source("in", lambda t: 100.0), Operator("work", ("in",), 0.1, most=most)], slots=slots)
    run = simulate(model, "auto", seconds=60)
    reasons = [d.reason for d in run.decisions if d.what == "no change"]
    assert [cause in reason for reason in reasons].count(True) == 1
    assert len(reasons) <= 3


def test_probe_looks_back_until_it_sees_a_whole_tuple():
    """One of 5 s answers fifty probes within milliseconds when it is over: a window of those says nothing."""
    policy = Probe()
    plan = UnitPlan("work", "bolt", inputs=(Input("in", "in", by_key()),), max_parallelism=16)
    source = UnitView("in", UnitPlan("in", "spout"), (Sample(1, window=0.5, emitted=1.0),))
    wanted = []
    for i in range(600):
        now = 1000.0 + 0.1 * i
        told = 0.004 if policy.span < 5.0 or now < 1010.0 else 5.0
        probe = ProbeSample(i + 1, now)
        measured = Sample(2, window=told, arrivals=1.0, processed=0.2, busy=1.0, age=now - 999.0, probes=(probe,))
        unit = UnitView(
            "work", plan, (measured if told > 1 else replace(measured, processed=0.0, busy=0.0),), spouts=("in",)
        )
        wanted += policy.decide(View(now, now - 999.0, {"in": source, "work": unit}, free_slots=15, unit=unit))
    assert policy.span == 15.0
    grown = [action for action in wanted if isinstance(action, Rescale)]
    assert grown
    assert grown[0].n >= 8
