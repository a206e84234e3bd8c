"""The simulator: nothing is made up or lost, queues are what queueing says, changes take what they take, seeds repeat."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault.elasticity.action import Rescale, Throttle
from esault.errors import UsageError
from esault.routing.ring import position
from esault.routing.table import OutputTable
from esault.sim import Host, Model, Operator, Source, Timing, simulate


class At:
    """Does what it is told at some second."""

    period = 1.0

    def __init__(self, actions):
        self.actions = dict(actions)
        self.windows = []

    def decide(self, view):
        self.windows.append({name: unit.window for name, unit in view.units.items()})
        return self.actions.pop(round(view.now), [])


def line(rate, keys=(), source=None, **fields):
    fields = {"service": 0.01, "width": 2, "most": 8, **fields}
    return Model([Source("in", rate, burst=0.0, **(source or {})), Operator("work", ("in",), keys=keys, **fields)])


def test_latency_is_the_service_while_there_is_capacity():
    run = simulate(line(lambda t: 100.0), seconds=20)
    assert run.latency.mean == pytest.approx(0.0105, rel=0.01)
    assert run.operators["work"].utilisation == pytest.approx(0.5, rel=0.02)
    assert run.latency.count == pytest.approx(2000)
    assert run.worker_seconds == pytest.approx(40.0)


@pytest.mark.parametrize("selectivity", [0.0, 3.0])
def test_what_comes_to_its_end_counts_once_whatever_is_put_out_beyond(selectivity):
    run = simulate(line(lambda t: 100.0, selectivity=selectivity), seconds=20, objectives=["p99 < 1 ms"])
    assert run.latency.count == pytest.approx(2000)
    assert run.objectives[0].slow == run.objectives[0].tuples > 1900


def test_overload_piles_up_as_fast_as_the_rates_differ():
    run = simulate(line(lambda t: 300.0), seconds=20)
    assert run.operators["work"].waiting == pytest.approx(2000, rel=0.01)  # 300/s come, 200/s go
    assert run.latency.most == pytest.approx(20 / 3, rel=0.02)  # done at 20 s, came at 13.3 s


def test_a_full_buffer_drops_and_counts():
    run = simulate(line(lambda t: 300.0, buffer=100), seconds=20)
    work = run.operators["work"]
    assert work.dropped == pytest.approx(100 * 20 - 100, rel=0.02)
    assert work.arrived == pytest.approx(work.processed + work.dropped + work.waiting)
    assert run.latency.most < 0.6


def test_the_window_of_the_source_holds_back_and_the_lag_says_so():
    run = simulate(line(lambda t: 300.0, source={"max_pending": 50}), seconds=20)
    assert run.lag == pytest.approx(2000, rel=0.05)
    assert run.operators["work"].waiting <= 50
    assert run.latency.most == pytest.approx(20 / 3, rel=0.05)  # what waits at the source counts


@pytest.mark.parametrize("keys", [(), [1.0] * 200])
def test_a_change_takes_its_time_and_ends_the_overload(keys):
    policy = At({5: [Rescale("more", 4, unit="work")]})
    model = line(lambda t: 300.0, keys=keys)
    run = simulate(model, policy, seconds=30)
    work = run.operators["work"]
    assert [n for _, n in work.trace] == [2, 4]
    assert work.trace[1][0] == pytest.approx(5 + Timing().start, abs=0.03)
    assert work.changes[0].seconds == pytest.approx(Timing().start + Timing().move, abs=0.05)
    # 4 s of 100/s more than can be done, then 100/s less
    assert work.waiting < 10
    assert run.worker_seconds == pytest.approx(2 * 5 + 4 * 25, rel=0.02)


def test_a_growth_by_many_may_take_longer_and_shrinking_its_own_time():
    policy = At({5: [Rescale("more", 6, unit="work")], 15: [Rescale("less", 2, unit="work")]})
    timing = Timing(start=0.5, start_each=0.2, switch=0.4)
    run = simulate(replace(line(lambda t: 100.0, keys=[1.0] * 200), timing=timing), policy, seconds=30)
    (_, _), (grown, _), (shrunk, _) = run.operators["work"].trace
    assert grown == pytest.approx(5 + 0.5 + 3 * 0.2, abs=0.05)
    assert shrunk == pytest.approx(15 + 0.4, abs=0.05)


def test_whole_tuples_meet_by_chance_and_none_is_lost():
    shared = line(lambda t: 160.0, keys=[1.0] * 200)
    parts = [replace(p, whole=True) if isinstance(p, Operator) else p for p in shared.parts]
    fluid, whole = (simulate(model, seconds=60) for model in (shared, replace(shared, parts=parts)))
    counts = [run.operators["work"] for run in (fluid, whole)]
    assert [each.arrived for each in counts] == pytest.approx([160 * 60] * 2, abs=2)
    assert [each.processed + each.waiting for each in counts] == pytest.approx([160 * 60] * 2, abs=2)
    assert whole.latency.percentile(0.99) > 1.5 * fluid.latency.percentile(0.99)


def test_a_change_holds_moved_keys_for_longer_the_more_sub_units_it_starts():
    policy = At({5: [Rescale("more", 6, unit="work")], 15: [Rescale("less", 2, unit="work")]})
    timing = Timing(move=0.1, move_each=0.2)
    run = simulate(replace(line(lambda t: 100.0, keys=[1.0] * 200), timing=timing), policy, seconds=30)
    assert [each.held for each in run.operators["work"].changes] == [
        pytest.approx(0.9, abs=0.05),
        pytest.approx(0.1, abs=0.05),
    ]


def test_moved_keys_go_on_before_a_change_is_over():
    policy = At({5: [Rescale("more", 4, unit="work")], 6: [Rescale("more", 6, unit="work")]})
    timing = Timing(start=0.2, move=0.1, finish=1.2)
    run = simulate(replace(line(lambda t: 100.0, keys=[1.0] * 200), timing=timing), policy, seconds=10)
    (change,) = run.operators["work"].changes  # the second was refused: the first was still on
    assert (change.held, change.seconds) == (pytest.approx(0.1, abs=0.03), pytest.approx(1.5, abs=0.05))
    assert run.latency.most < 0.2
    assert [d.outcome.partition(":")[0] for d in run.decisions] == ["done", "refused"]


@given(st.floats(0.0, 0.4))
@settings(max_examples=20, deadline=None)
def test_windows_are_seen_when_their_reports_are_there_and_are_the_same_ones(reported):
    prompt, late = At({}), At({})
    looks = []
    decide = late.decide
    late.decide = lambda view: looks.append((view.now, view.units["in"].window)) or decide(view)
    model = line(lambda t: 100.0 + 20.0 * t)
    for policy, timing in ((prompt, Timing()), (late, Timing(reported=reported))):
        policy.period = 0.5
        simulate(replace(model, timing=timing), policy, seconds=10, tick=0.02)
    assert all(-1e-6 <= now - window.end - reported <= 0.021 for now, window in looks if window is not None)
    seen = [[round(w["in"].emitted, 6) for w in policy.windows if w["in"] is not None] for policy in (prompt, late)]
    assert len(seen[1]) >= 18 and seen[1] == seen[0][: len(seen[1])]


def test_windows_have_the_same_ends_for_all_and_add_up():
    policy = At({})
    run = simulate(line(lambda t: 150.0), policy, seconds=10)
    windows = [w for w in policy.windows if w["work"] is not None]
    assert [round(w["work"].end) for w in windows] == list(range(1, 11))
    assert all(w["work"].start == w["in"].start and w["work"].end == w["in"].end for w in windows)
    assert sum(w["in"].emitted for w in windows) == pytest.approx(run.read)
    assert sum(w["work"].processed for w in windows) == pytest.approx(run.operators["work"].processed)
    assert windows[4]["work"].service == pytest.approx(0.01)


def test_windows_that_end_between_two_ticks_are_cut_there():
    policy = At({})
    policy.period = 0.25
    simulate(line(lambda t: 100.0), policy, seconds=10)
    windows = [w["in"] for w in policy.windows if w["in"] is not None]
    assert len(windows) == 40
    assert all(w.emitted == pytest.approx(25.0, rel=0.01) for w in windows)


def test_a_throttle_slows_for_its_time():
    policy = At({4: [Throttle("slower", 50.0, 2.0, unit="work")]})
    run = simulate(line(lambda t: 100.0), policy, seconds=10)
    at = {round(t): (processed, waiting) for t, _, processed, waiting in run.operators["work"].series}
    assert at[6][1] == pytest.approx(100, rel=0.05)
    assert at[5][0] == pytest.approx(50, rel=0.05)
    assert at[10][1] < 5


def test_processors_are_shared_where_work_is_theirs():
    slow = Model(
        [
            Source("in", lambda t: 100.0, burst=0.0),
            Operator("a", ("in",), 0.01, cpu=1.0, width=2, most=2),
            Operator("b", ("in",), 0.01, cpu=1.0, width=2, most=2),
        ],
        hosts=(Host(cores=1.0),),
    )
    run = simulate(slow, seconds=20)
    done = {name: o.processed for name, o in run.operators.items()}
    assert sum(done.values()) == pytest.approx(2000, rel=0.05)  # a core for 20 s at 10 ms each
    assert done["a"] == pytest.approx(done["b"], rel=0.05)


def test_a_delay_hands_on_a_window_later():
    model = Model(
        [
            Source("in", lambda t: 100.0, burst=0.0),
            Operator("a", ("in",), 0.001, delay=5.0),
            Operator("b", ("a",), 0.001),
        ]
    )
    run = simulate(model, seconds=20)
    assert run.latency.mean == pytest.approx(5.003, rel=0.01)
    assert run.operators["b"].arrived == pytest.approx(1500, rel=0.01)


def test_heavy_keys_are_one_sub_units_business():
    keys = [50.0] + [1.0] * 50
    run = simulate(line(lambda t: 300.0, keys=keys, width=4), seconds=20)
    assert run.operators["work"].waiting > 900  # half of it is one key's: 150/s and more, to one server of 100/s
    assert simulate(line(lambda t: 300.0, keys=[1.0] * 100, width=4), seconds=20).operators["work"].waiting < 100


@settings(max_examples=25, deadline=None)
@given(
    st.floats(10, 2000),
    st.floats(0.0005, 0.02),
    st.sampled_from(["probe", "esault", "none"]),
    st.booleans(),
    st.integers(0, 99),
    st.sampled_from([None, 30.0, 3000.0]),
)
def test_what_came_is_somewhere(rate, service, policy, keyed, seed, buffer):
    model = Model(
        [
            Source("in", lambda t: rate * (1 + math.sin(t)), noise=0.2, max_pending=500.0),
            Operator("a", ("in",), service, most=6, selectivity=2.0, keys=[1.0] * 64 if keyed else (), buffer=buffer),
            Operator("b", ("a",), service / 2, width=2, most=6),
        ]
    )
    run = simulate(model, policy, seconds=15, seed=seed)
    a, b = run.operators["a"], run.operators["b"]
    assert run.offered == pytest.approx(run.read + run.lag)
    assert a.arrived == pytest.approx(run.read)
    assert a.arrived == pytest.approx(a.processed + a.dropped + a.waiting, rel=1e-6, abs=1e-6)
    assert b.arrived == pytest.approx(2 * a.processed, rel=1e-6, abs=1e-6)
    assert b.arrived == pytest.approx(b.processed + b.waiting, rel=1e-6, abs=1e-6)
    assert run.latency.count == pytest.approx(b.processed)


def test_the_same_seed_gives_the_same_run_and_another_another():
    model = line(lambda t: 190.0, keys=[1.0] * 100)
    noisy = Model([Source("in", lambda t: 190.0, burst=8.0), model.parts[1]])
    runs = [simulate(noisy, "probe", seconds=20, seed=s) for s in (1, 1, 2)]
    means = [r.latency.mean for r in runs]
    assert means[0] == means[1] != means[2]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Model([Operator("a", ("in",), 0.1)]), "must stand before it"),
        (lambda: Model([Source("in", len), Source("in", len)]), "two parts 'in'"),
        (lambda: Model([Source("in", len), Operator("a", ("in",), 0.0)]), "service must be above 0"),
        (lambda: Model([Source("in", len), Operator("a", ("in",), 1.0, width=3, most=2)]), "most 2"),
        (lambda: Model([Source("in", len), Operator("a", ("in",), 1.0, width=30)], slots=4), "more than 4 slots"),
        (lambda: Model([]), "needs a Source"),
        (lambda: simulate(line(len), seconds=0), "seconds 0"),
        (lambda: simulate(line(len), "prob", seconds=1), "no policy 'prob'"),
        (lambda: simulate(line(len), policies={"wrok": "probe"}, seconds=1), "no unit 'wrok'"),
    ],
)
def test_what_cannot_be_is_refused_in_words(make, says):
    with pytest.raises(UsageError, match=says):
        make()


@pytest.mark.parametrize("keys", [(), (1.0,) * 50])
def test_a_tuple_takes_as_long_as_the_pace_says(keys):
    run = simulate(line(lambda t: 60.0, keys=keys, pace=lambda t: 1.0 if t < 10 else 3.0), seconds=20)
    work = run.operators["work"]
    assert work.busy == pytest.approx(60 * 10 * 0.01 + 60 * 10 * 0.03, rel=0.02)
    assert work.processed == pytest.approx(1200, rel=0.02)


def test_keys_become_hot_and_cold_again():
    first, second = [1.0, 0.0], [0.0, 1.0]
    owners = OutputTable.even([1, 2])
    apart = next(i for i in range(1, 50) if owners.owner(position(f"work {i}")) != owners.owner(position("work 0")))
    keys = [first[0], *([0.0] * (apart - 1)), first[1]]
    later = [second[0], *([0.0] * (apart - 1)), second[1]]
    # One sub-unit does 100 a second, and all of 150 are for one key, then for one of the other.
    run = simulate(line(lambda t: 150.0, keys=keys, later_keys=[(10.0, later)]), seconds=16)
    waiting = {round(t): w for t, _, _, w in run.operators["work"].series}
    assert waiting[10] == pytest.approx(500, rel=0.05)
    assert waiting[16] == pytest.approx(
        500 - 5 * 100 + 6 * 50, rel=0.1
    )  # the first is empty after 5 s, the other fills


def test_later_keys_are_as_many():
    with pytest.raises(UsageError, match="weights of its 2 keys"):
        line(lambda t: 1.0, keys=[1.0, 1.0], later_keys=[(5.0, [1.0])])
