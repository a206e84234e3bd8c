"""What `auto` wants, in the simulator and on views."""

from __future__ import annotations

import math
from dataclasses import replace

import depth
import pytest
from run_views import run

from esault.elasticity.action import Rescale
from esault.elasticity.policies.auto import Auto
from esault.elasticity.policy import make
from esault.errors import UsageError
from esault.messages.change_record import ChangeRecord
from esault.sim import Host, Model, Operator, Source, simulate


def jump(t):
    return 400.0 if t >= 20 else 50.0


def one(rate, source=None, **fields):
    fields = {"service": 0.01, "width": 1, "most": 20, "keys": [1.0] * 500, **fields}
    return Model([Source("in", rate, **(source or {})), Operator("work", ("in",), **fields)], slots=64)


def test_a_jump_by_eight_is_one_change_and_soon_over():
    run = simulate(one(jump), "auto", seconds=40, seed=3)
    work = run.operators["work"]
    grown = [c for c in work.changes if c.after > c.before]
    assert len(grown) == 1
    assert 20 < grown[0].at < 21.2
    assert work.trace[-1][1] in (5, 6, 7)
    assert all(waiting < 20 for t, _, _, waiting in work.series if t >= 24)


def test_a_chain_grows_together_although_only_the_first_feels_the_jump():
    model = Model(
        [
            Source("in", jump, max_pending=200.0),
            Operator("a", ("in",), 0.008, most=20),
            Operator("b", ("a",), 0.005, most=20, selectivity=2.0),
            Operator("c", ("b",), 0.004, most=20),
        ],
        slots=64,
    )
    run = simulate(model, "auto", seconds=40, seed=3)
    first = {name: o.changes[0].at for name, o in run.operators.items()}
    assert max(first.values()) - min(first.values()) < 0.6
    widths = {name: o.trace[-1][1] for name, o in run.operators.items()}
    assert widths["a"] * 0.8 >= 400 * 0.008 - 0.01
    assert widths["c"] * 0.8 >= 800 * 0.004 - 0.01
    assert sum(len(o.changes) for o in run.operators.values()) <= 6
    probe = simulate(model, "probe", seconds=40, seed=3)
    assert run.latency.percentile(0.99) < probe.latency.percentile(0.99)


def test_a_diamond_is_followed_on_both_ways():
    model = Model(
        [
            Source("in", jump),
            Operator("a", ("in",), 0.001),
            Operator("b", ("a",), 0.009, most=9),
            Operator("c", ("a",), 0.0045, most=9),
            Operator("d", ("b", "c"), 0.0036, most=9),
        ],
        slots=64,
    )
    run = simulate(model, "auto", seconds=40, seed=1)
    assert [run.operators[n].trace[-1][1] for n in "abcd"] == [1, 5, 3, 4]  # work for 0.4, 3.6, 1.8 and 2.9 at 80 %


@pytest.mark.slow
def test_a_rhythm_is_learnt_and_growth_begins_before_the_jump():
    def rhythm(t):
        return 400.0 if t % 40 >= 30 else 50.0

    run = simulate(one(rhythm), "auto", seconds=240, seed=1)
    grown = [c.at for c in run.operators["work"].changes if c.after > c.before]
    assert grown[0] > 30
    later = [at % 40 for at in grown if at > 130]
    assert later
    assert all(26 <= at <= 30.5 for at in later)
    blunt = simulate(one(rhythm), "auto:rhythm=no", seconds=240, seed=1)
    assert run.latency.percentile(0.99) < blunt.latency.percentile(0.99)


def test_where_the_rhythm_says_when_it_is_needed_again_it_stops_at_once():
    """12 s of quiet are worth a change, though growth begins 3 s before the next rush and looks ahead for 6 s."""
    run = simulate(one(lambda t: 600.0 if t % 22 < 10 else 20.0, most=16), "auto", seconds=150)
    trace = run.operators["work"].trace

    def width(at):
        return [n for t, n in trace if t <= at][-1]

    assert [width(cycle * 22 + 11.2) for cycle in (4, 5)] == [1, 1]
    assert max(most for second, (_, _, most) in run.latency.seconds.items() if second >= 88) < 0.25


@pytest.mark.slow
def test_what_a_rhythm_brings_back_at_once_is_stopped_although_the_change_holds_keys_for_long():
    """A change holds keys for 0.7 s, which is worth 7 s of a sub-unit: of one, and not of each of the seven that come again."""
    run = simulate(one(lambda t: 600.0 if t % 20 < 10 else 20.0, most=16, state=40e6), "auto", seconds=200)
    work = run.operators["work"]
    assert max(c.held for c in work.changes) > 0.6
    assert [(c.before > 7, c.after <= 2) for c in work.changes if c.at > 145 and c.after < c.before] == [
        (True, True)
    ] * 3
    assert max(most for second, (_, _, most) in run.latency.seconds.items() if second >= 150) < 0.85


def test_a_full_unit_behind_a_source_that_cannot_tell_is_doubled():
    model = one(lambda t: 350.0, source={"max_pending": 100.0, "knows_lag": False})
    run = simulate(model, "auto", seconds=40)
    widths = [n for _, n in run.operators["work"].trace]
    assert 2 <= widths[1] <= 10
    assert widths[-1] == 5  # work for 3.5 at 80 %


def growth(samples, last=None, busy=0.6):
    """Seconds until a unit grows that gets through all that comes, while its source, which cannot tell of more, is held back, and the
    sub-units that it wants then; inf: it does not grow."""
    policy = Auto()
    # Values of 10 kB on two cores, measured: user code has a third of the time, the rest is frames, copies and sending.
    reader = {"arrivals": 4000.0, "emitted": 4000.0, "rates": True, "backpressured": 0.9}
    worker = {"arrivals": 4000.0, "processed": 4000.0, "emitted": 4000.0, "busy": busy, "rates": True}
    worker |= {"waiting_before": 14.0, "waiting": 20.0, "samples": samples}
    for look in range(1, 40):
        view = run(0.25 * look, {"in": reader, "work": worker}, {"work": ["in"]}, seconds=0.25)
        view = replace(view, units={**view.units, "work": replace(view.units["work"], last=last)})
        for each in policy.decide(view):
            if isinstance(each, Rescale):
                return 0.25 * (look - 1), each.n
    return math.inf, 1


def grown_at(samples, last=None, busy=0.6):
    return growth(samples, last, busy)[0]


def changed(before, after):
    return ChangeRecord(
        at=-10.0,
        unit="work",
        kind="rescale",
        before=before,
        after=after,
        reason="",
        policy="auto",
        moved_keys=0,
        moved_bytes=0,
        held=0.0,
        seconds=0.1,
    )


def test_what_the_system_saw_at_work_all_the_time_grows_in_the_first_second():
    assert grown_at([{"cpu": 0.98, "cpu_wait": 0.01, "busy": 0.6}]) <= 0.5
    # Starved by others it is never idle either.
    assert grown_at([{"cpu": 0.25, "cpu_wait": 0.74, "busy": 0.6}]) <= 0.5
    # One that has time left, or of which nothing is known, is full by no count.
    assert grown_at([{"cpu": 0.7, "cpu_wait": 0.05, "busy": 0.6}]) == math.inf
    assert grown_at([{"busy": 0.6}]) == math.inf


def test_what_waits_for_a_service_all_the_time_grows_as_soon():
    assert grown_at([{"cpu": 0.1, "cpu_wait": 0.02, "busy": 0.97}], busy=0.97) <= 0.5


def test_what_is_known_to_wait_is_made_four_times_as_many_at_once():
    waits, works = {"cpu": 0.1, "cpu_wait": 0.02, "busy": 0.97}, {"cpu": 0.95, "cpu_wait": 0.02, "busy": 0.97}
    assert growth([waits], busy=0.97)[1] == 4
    assert growth([works], busy=0.97)[1] == 2
    assert growth([{"busy": 0.97}], busy=0.97)[1] == 2  # the system does not say which of the two it does
    assert growth([waits], changed(2, 1), busy=0.97)[1] == 2  # that many were too many before


def test_what_has_shrunk_must_be_full_for_longer():
    full = [{"cpu": 0.98, "cpu_wait": 0.01, "busy": 0.6}]
    assert grown_at(full, changed(1, 2)) <= 0.5
    assert grown_at(full, changed(2, 1)) >= Auto().calm


@pytest.mark.slow
def test_noise_is_no_reason():
    run = simulate(one(lambda t: 300.0, source={"burst": 2.0}, width=5), "auto", seconds=120, seed=2)
    assert run.changes <= 2


@pytest.mark.slow
def test_less_room_is_kept_where_nothing_was_unforeseen():
    run = simulate(one(lambda t: 3000.0, service=0.004, width=15), "auto", seconds=90, seed=1)
    assert run.operators["work"].trace[-1][1] == 14  # work for 12, which took 15 at 80 %
    assert run.operators["work"].trace[-1][0] > 25


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 4])
def test_chance_in_a_thin_stream_is_no_reason_for_room(seed):
    run = simulate(one(lambda t: 880.0, service=0.004, width=5), "auto", seconds=90, seed=seed)
    assert run.operators["work"].trace[-1][1] == 4  # work for 3.5, which took 5 at 80 %
    assert run.latency.percentile(0.99) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_fall_is_one_change_where_only_doubt_speaks_for_another_sub_unit(seed):
    def fall(t):
        return 3000.0 if t < 15 else 600.0

    run = simulate(one(fall, service=0.004, width=15, keys=[1.0] * 5000), "auto", seconds=60, seed=seed)
    assert [(c.before, c.after) for c in run.operators["work"].changes] == [(15, 3)]  # work for 2.4, just 3 at 80 %


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_peak_is_two_changes_although_its_surprise_is_remembered_for_longer(seed):
    def peak(t):
        return 3000.0 if 30 <= t < 40 else 830.0

    run = simulate(one(peak, service=0.004, width=5), "auto", seconds=110, seed=seed)
    assert [c.after for c in run.operators["work"].changes] == [
        16,
        4,
    ]  # work for 3.3: 5 at 80 %, until a minute has passed


def test_a_climb_is_followed_before_anything_waits():
    run = simulate(one(lambda t: 200.0 + 15.0 * max(0.0, t - 30), width=3), "auto", seconds=100, seed=1)
    assert run.operators["work"].trace[-1][1] * 0.95 > 12  # work for 12.5 at the end
    assert run.latency.percentile(0.99) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", depth.chosen([2, 3], (2,)))
def test_bursts_are_no_change(seed):
    def rate(t):
        return 1500.0 if t < 60 else 700.0

    model = one(rate, {"burst": 64.0}, width=24, most=40, keys=[1.0] * 20_000)
    run = simulate(model, "auto", seconds=120, seed=seed)
    assert max(n for _, n in run.operators["work"].trace) < 30  # work for 15, and for 7
    assert run.changes <= 10


def test_rare_bursts_are_no_load():
    run = simulate(one(lambda t: 20.0, source={"burst": 64.0}, service=0.0018), "auto", seconds=120, seed=1)
    assert max(n for _, n in run.operators["work"].trace) <= 3
    assert run.worker_seconds < 1.3 * 120


def test_one_heavy_key_is_told_of_and_not_fought():
    run = simulate(one(lambda t: 140.0, keys=[400.0] + [1.0] * 40), "auto", seconds=30)
    assert any("alone brings" in notice for notice in run.notices)


def test_without_cores_it_does_not_grow():
    model = Model(
        [Source("in", lambda t: 900.0), Operator("work", ("in",), 0.01, cpu=1.0, width=2, most=20)],
        hosts=(Host(cores=2.0),),
        slots=64,
    )
    assert simulate(model, "auto", seconds=20).operators["work"].trace[-1][1] <= 3


@pytest.mark.slow
def test_state_that_is_slow_to_move_makes_it_patient():
    def wavy(t):
        return 300.0 if t % 16 < 8 else 100.0

    light = simulate(one(wavy), "auto:rhythm=no", seconds=120, seed=1)
    heavy = simulate(one(wavy, state=100e6), "auto:rhythm=no", seconds=120, seed=1)
    assert heavy.changes < light.changes


def test_it_says_why():
    run = simulate(one(jump), "auto", seconds=30)
    reasons = [d.reason for d in run.decisions]
    assert any("tuples/s of 10 ms each are work for" in reason for reason in reasons)


def test_parameters_are_checked():
    assert make("auto:latency=0.05,rhythm=no") == Auto(latency=0.05, rhythm=False)
    assert make("auto") == Auto()
    with pytest.raises(UsageError, match="latency=-1 must be 0 or more"):
        make("auto:latency=-1")
    with pytest.raises(UsageError, match="busy='much' is no float"):
        make("auto:busy=much")
    with pytest.raises(UsageError, match="no parameter 'calmness=1'.*calm"):
        make("auto:calmness=1")


def test_a_spent_budget_is_named_also_while_another_unit_changes():
    policy, told = Auto(), []
    counted = {"arrivals": 1000.0, "processed": 100.0, "emitted": 100.0, "busy": 1.0, "waiting": 500.0, "rates": True}
    for look in range(1, 20):
        units = {
            "in": {"arrivals": 1000.0, "emitted": 1000.0, "rates": True},
            "a": dict(counted),
            "b": {"changing": True},
        }
        view = run(0.25 * look, units, {"a": ["in"], "b": ["in"]}, seconds=0.25, free=0)
        told += [each.reason for each in policy.decide(replace(view, budget=3)) if each.unit == "a"]
    assert any(text.endswith("; the budget of 3 is spent") for text in told)
    assert not any("--slots" in text for text in told)
