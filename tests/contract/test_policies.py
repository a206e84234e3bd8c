"""What holds for every policy that has a name: it runs anywhere, fails nowhere, and what it wants can be done or is refused."""

from __future__ import annotations

import math

import depth
import pytest

from esault import Bolt, EndOfStream, Spout, Topology, by_key, shuffle
from esault.elasticity.policy import POLICIES, make, parameters
from esault.sim import Host, Model, Operator, Source, simulate
from esault.testing import LocalRuntime

#: those of the engine: what other tests register for themselves has no part in this
NAMES = sorted(POLICIES.own)
#: times of policies that look rarely, so that a short run is long for them
QUICK = {
    "autoscale": "period=1",
    "craa": "period=1",
    "threshold": "period=1",
    "kalman": "period=1",
    "ds2": "policy_interval=1,warm_up_time=1",
    "flink": "reconcile_interval=1,metrics_window=2,stabilization_interval=1,scale_down_interval=5,catch_up_duration=10,restart_time=1",
    "dhalion": "interval=1,wait=3",
    "hpa": "sync_period=1,scale_down_stabilization_window=3,policy_period=1",
    "migration": "round=2",
    "random": "round=2",
}


#: of a run on the engine: some periods of each policy
SECONDS = 5 if depth.PROFILE == "deep" else 3
#: tuples a second
RATE = 300 if depth.PROFILE == "deep" else 100


#: seconds of the simulator in which `wave` has been at its highest and at its lowest
WAVE = 25 if depth.PROFILE == "deep" else 15


def spec(name):
    return f"{name}:{QUICK[name]}" if name in QUICK else name


def wave(t):
    return 200.0 + 180.0 * math.sin(t / 3)


MODELS = {
    "one": [Source("in", wave), Operator("a", ("in",), 0.01, most=9, keys=[1.0] * 50)],
    "nothing comes": [Source("in", lambda t: 0.0), Operator("a", ("in",), 0.01, width=3, most=9)],
    "far too much": [Source("in", lambda t: 5000.0, max_pending=500.0), Operator("a", ("in",), 0.01, most=3)],
    "it cannot tell": [
        Source("in", lambda t: 900.0, max_pending=100.0, knows_lag=False),
        Operator("a", ("in",), 0.005, most=9),
    ],
    "small buffers": [Source("in", wave), Operator("a", ("in",), 0.01, most=9, buffer=20.0)],
    "two sources, a diamond": [
        Source("in", wave),
        Source("too", lambda t: 50.0),
        Operator("a", ("in", "too"), 0.001, most=9, selectivity=2.0),
        Operator("b", ("a",), 0.004, most=9, selectivity=0.0),
        Operator("c", ("a",), 0.002, most=9),
        Operator("d", ("b", "c", "too"), 0.001, most=9),
    ],
    "it stops and comes back": [
        Source("in", lambda t: 300.0 if t % 10 < 5 else 0.0),
        Operator("a", ("in",), 0.01, most=9, state=50e6, keys=[5.0] + [1.0] * 20),
    ],
}


#: each with each in the deep run; in others each policy in one or two models, and each model with a fifth of the policies
PAIRS = [
    (model, name)
    for i, model in enumerate(MODELS)
    for j, name in enumerate(NAMES)
    if depth.PROFILE == "deep" or (i + j) % 5 == 0
]


@pytest.mark.parametrize(("model", "name"), PAIRS)
def test_it_fails_in_no_model(name, model):
    run = simulate(Model(MODELS[model], slots=40), spec(name), seconds=25, seed=1)
    assert [d.reason for d in run.decisions if d.outcome == "failed"] == []
    for operator in run.operators.values():
        assert operator.arrived == pytest.approx(operator.processed + operator.dropped + operator.waiting, abs=1e-3)
    for record in run.decisions:
        assert record.reason
        assert record.unit


@pytest.mark.parametrize("name", NAMES)
def test_it_stays_within_bounds(name):
    parts = [Source("in", wave), Operator("a", ("in",), 0.01, width=3, least=2, most=4)]
    run = simulate(Model(parts, slots=8), spec(name), seconds=WAVE, seed=1)
    assert all(2 <= n <= 4 for _, n in run.operators["a"].trace)


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_where_there_are_several_hosts(name):
    parts = [Source("in", wave), Operator("a", ("in",), 0.01, width=4, most=9, cpu=0.5)]
    run = simulate(Model(parts, hosts=(Host("x", 1.0), Host("y", 4.0)), slots=40), spec(name), seconds=WAVE, seed=1)
    assert [d.reason for d in run.decisions if d.outcome == "failed"] == []


@pytest.mark.parametrize("name", NAMES)
def test_two_of_them_do_not_know_of_each_other(name):
    assert make(name) is not make(name)
    runs = [simulate(Model(MODELS["one"]), spec(name), seconds=12, seed=5) for _ in range(2)]
    assert runs[0].operators["a"].trace == runs[1].operators["a"].trace


@pytest.mark.parametrize("name", NAMES)
def test_each_parameter_can_be_written(name):
    for parameter, default in parameters(name).items():
        text = str(default).lower() if isinstance(default, bool) else default
        if default is not None:
            assert make(f"{name}:{parameter}={text}") is not None


class Ticking(Spout):
    """Tuples by the clock, for some seconds."""

    def __init__(self):
        self.start, self.count = None, 0

    def read(self, limit):
        now = self.context.now()
        self.start = now if self.start is None else self.start
        if now - self.start > SECONDS:
            raise EndOfStream
        due = int((now - self.start) * RATE) - self.count
        rows = [(f"k{(self.count + i) % 50}", 1) for i in range(min(due, limit))]
        self.count += len(rows)
        return rows


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_on_the_engine_where_no_time_passes_in_processing(name):
    t = Topology("t")
    t.spout("in", Ticking()).bolt("a", Pass, grouping=shuffle()).bolt("b", Pass, grouping=by_key())
    local = LocalRuntime(t, policies={"": spec(name)})
    local.run_until_drained()
    assert [d.reason for d in local.driver.scaling.log if d.outcome == "failed"] == []
    assert len(local.emitted("b")) == local.report().units["in"].tuples_out > 0.8 * RATE * SECONDS
