"""The policies `migration` and `random` on views."""

from __future__ import annotations

from dataclasses import replace

import pytest

from esault import Bolt, Topology, UsageError, by_key
from esault.elasticity.action import Advise, Migrate
from esault.elasticity.policies.migration import Migration
from esault.elasticity.policies.random_choice import RandomChoice
from esault.elasticity.policy import make
from esault.elasticity.scaling import EVERY_UNIT, Scaling
from esault.elasticity.view import ProbeSample, RunView, Sample, UnitView
from esault.messages.probe import HostUsage
from esault.sinks import Collect
from esault.sources import Items
from esault.topology.plan import UnitPlan

HOSTS = tuple(HostUsage(name, cores=4, memory=0, memory_total=100) for name in ("A", "B", "C"))
LOW, HIGH = ((0, 99),), ((100, 199),)


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def sub(number, host, latency, cpu=0.4, ranges=LOW, copy=0, **figures):
    return Sample(number, ranges, host, copy, age=100, window=1.0, latency=latency, cpu=cpu, **figures)


def view(now, units, hosts=HOSTS, managed=None, changing=(), changed_at=None):
    views = {
        name: UnitView(name, UnitPlan(name, "bolt"), tuple(samples), name in changing, (changed_at or {}).get(name))
        for name, samples in units.items()
    }
    return RunView(now, now, views, hosts, 8, tuple(units) if managed is None else managed)


def grown(number, host, now, at=5, **figures):
    """Latency doubles at second `at`."""
    return sub(number, host, 0.02 if now >= at else 0.01, **figures)


def run(policy, units_at, seconds, **more):
    """Actions by second."""
    found = {}
    for now in seconds:
        actions = policy.decide(view(float(now), units_at(now), **more))
        if actions:
            found[now] = list(actions)
    return found


def two_units(now):
    """One on A gets worse beside a busy one."""
    return {"a": [grown(1, "A", now)], "b": [sub(2, "A", 0.01, cpu=2.0)]}


def test_what_gets_worse_goes_where_no_resource_is_fuller_once_a_round():
    found = run(Migration(d=0.25), two_units, range(1, 20))
    assert list(found) == [10]
    (action,) = found[10]
    assert isinstance(action, Migrate)
    assert (action.unit, action.sub_unit, action.host) == ("a", 1, "B")
    assert action.reason == (
        "its latency grew by 100% of 10 ms within 10 reports, in steps of more than 25%; host A is at 60% (cpu), "
        "B will be at 10% (cpu)"
    )


def test_a_busy_but_steady_host_needs_no_action():
    steady = lambda now: {"a": [sub(1, "A", 5.0, cpu=2.0)], "b": [sub(2, "A", 5.0, cpu=2.0)]}
    assert run(Migration(d=0.0), steady, range(1, 40)) == {}


@pytest.mark.parametrize(("d", "moves"), [(0.5, True), (0.99, True), (1.0, False), (1.5, False)])
def test_growth_counts_above_the_sensitivity(d, moves):
    assert bool(run(Migration(d=d), two_units, range(1, 12))) is moves


def test_growth_between_two_rounds_is_seen_by_neither():
    jump = lambda now: {"a": [grown(1, "A", now, at=11)], "b": [sub(2, "A", 0.01, cpu=2.0)]}
    assert run(Migration(), jump, range(1, 25)) == {}


def test_active_copies_never_share_a_host():
    def units(now):
        return {
            "a": [
                grown(1, "A", now, cpu=1.0),
                sub(3, "B", 0.01, copy=1, cpu=0.1),
                sub(4, "C", 0.01, cpu=0.2, ranges=HIGH),
            ],
            "b": [sub(2, "A", 0.01, cpu=2.0)],
        }

    (action,) = run(Migration(), units, range(1, 12))[10]
    assert (action.sub_unit, action.host) == (1, "C")  # B is emptier, but has the other copy; C only has another range
    assert not run(Migration(), units, range(1, 12), hosts=HOSTS[:2])


def test_copies_count_once_although_each_has_a_unit_with_all_of_them():
    pair = [sub(1, "B", 0.01, cpu=0.9), sub(2, "C", 0.01, copy=1, cpu=0.9)]
    policy = Migration()
    for now in range(1, 11):
        others = {"b": [grown(3, "A", now, cpu=0.5)], "other": [sub(4, "A", 0.01, cpu=1.0)]}
        looked = view(float(now), {"a": pair, "a~1": pair, **others}, managed=("a", "b", "other"))
        second = replace(looked.units["a~1"], plan=UnitPlan("a~1", "bolt", replicas=2, replica_index=1, original="a"))
        actions = policy.decide(replace(looked, units={**looked.units, "a~1": second}))
    assert [(a.unit, a.host) for a in actions if isinstance(a, Migrate)] == [
        ("b", "B")
    ]  # at 1.4 of 1.5; with each copy told twice it would be 2.3


def test_memory_forbids_unless_it_is_left_out():
    def units(now):
        # A and B have two of the same size each: with one more B would have more than A has.
        return {
            "a": [grown(1, "A", now, memory=10)],
            "b": [sub(2, "A", 0.01, cpu=2.0, memory=10)],
            "c": [sub(3, "B", 0.01, memory=10), sub(4, "B", 0.01, ranges=HIGH, memory=10)],
        }

    two = HOSTS[:2]
    assert not run(Migration(), units, range(1, 12), hosts=two)
    (action,) = run(Migration(memory=False), units, range(1, 12), hosts=two)[10]
    assert action.host == "B"


@pytest.mark.parametrize(
    ("resource", "figures"),
    [
        ("network", {"arrivals": 500.0}),
        ("network", {"emitted": 500.0}),
        ("disk", {"read": 1e6}),
        ("disk", {"written": 1e6}),
    ],
)
def test_each_resource_alone_can_forbid(resource, figures):
    def units(now):
        return {
            "a": [grown(1, "A", now, **figures)],
            "b": [sub(2, "A", 0.01, cpu=2.0)],
            "c": [sub(3, "B", 0.01, **figures)],
        }

    two = HOSTS[:2]
    assert not run(Migration(), units, range(1, 12), hosts=two)
    assert run(Migration(**{resource: False}), units, range(1, 12), hosts=two)


def test_no_more_than_the_limit_are_moved_in_a_round():
    def units(now):
        return {name: [grown(i, "A", now)] for i, name in enumerate("abcd")}

    assert [len(v) for v in run(Migration(limit=1), units, range(1, 12)).values()] == [1]
    assert [len(v) for v in run(Migration(limit=2), units, range(1, 12)).values()] == [2]
    every = run(Migration(limit=0), units, range(1, 12))[10]
    # B and C end with one each; a third would put one of them level with A, which is lower in nothing.
    assert sorted(a.host for a in every) == ["B", "C"]


def test_only_what_it_may_change_is_moved_but_all_take_room():
    assert not run(Migration(), two_units, range(1, 12), managed=("b",))
    others = [sub(7, "B", 0.01, cpu=2.4), sub(8, "C", 0.01, cpu=2.4, ranges=HIGH)]
    full = lambda now: {**two_units(now), "other": others}
    assert not run(Migration(), full, range(1, 12), managed=("a", "b"))


def test_rounds_wait_for_changes_and_begin_anew_when_they_are_over():
    policy = Migration()
    assert 10 in run(policy, two_units, range(1, 11))
    assert not run(policy, two_units, (11, 12), changing=("a",))
    moved = lambda now: {**two_units(now), "a": [grown(9, "B", now, at=18)]}  # elsewhere, with a new number
    back = lambda now: {**moved(now), "b": [grown(2, "A", now, at=18, cpu=2.0)], "c": [sub(5, "A", 0.01, cpu=0.1)]}
    found = run(policy, back, range(13, 30), changed_at={"a": 12.5})
    assert list(found) == [22]  # ten seconds after the end of the change; no earlier report counts
    assert "within 10 reports" in found[22][0].reason


def test_a_change_between_two_looks_begins_a_window_too():
    policy = Migration()
    run(policy, two_units, range(1, 8))
    assert list(run(policy, two_units, range(8, 30), changed_at={"b": 7.5})) == []  # the jump at 5 is forgotten


def test_of_equally_worse_ones_the_one_moved_longest_ago_goes_first():
    policy = Migration()
    same = lambda now: {"a": [grown(1, "A", now)], "b": [grown(2, "A", now)], "c": [sub(3, "A", 0.01, cpu=2.0)]}
    (first,) = run(policy, same, range(1, 11))[10]
    assert first.unit == "a"
    assert not run(policy, same, (11, 12), changing=("a",))
    # It is on B for a while, and back on A by another hand: it was moved, b was not.
    on_b = lambda now: {**same(0), "a": [sub(8, "B", 0.01)]}
    run(policy, on_b, range(13, 18), changed_at={"a": 12.0})
    again = lambda now: {n: [replace(s, latency=0.02 if now >= 22 else 0.01) for s in v] for n, v in same(0).items()}
    found = run(policy, again, range(18, 30), changed_at={"a": 17.0})
    assert {now: a[0].unit for now, a in found.items()} == {27: "b"}


def test_a_wish_that_was_refused_is_no_move():
    policy = Migration()
    same = lambda now: {
        "a": [grown(1, "A", now % 10)],
        "b": [grown(2, "A", now % 10)],
        "c": [sub(3, "A", 0.01, cpu=2.0)],
    }
    found = run(policy, same, range(1, 31))
    assert {now: a[0].unit for now, a in found.items()} == {10: "a", 20: "a", 30: "a"}


def test_what_reports_no_latency_is_no_candidate():
    silent = lambda now: {"a": [sub(1, "A", None)], "b": [sub(2, "A", None, cpu=2.0)]}
    assert not run(Migration(d=0), silent, range(1, 25))


def test_who_has_not_been_measured_yet_is_not_moved():
    new = lambda now: {"a": [Sample(1, LOW, "A")], "b": [sub(2, "A", 0.01, cpu=2.0)]}
    for policy in (Migration(d=0), RandomChoice(probability=1.0)):
        found = run(policy, new, range(1, 25))
        assert all(a.unit == "b" for actions in found.values() for a in actions)


def test_busy_stands_for_processor_time_where_that_is_unknown():
    def units(now):
        return {"a": [replace(grown(1, "A", now), cpu=None, busy=0.4)], "b": [sub(2, "A", 0.01, cpu=None, busy=0.9)]}

    (action,) = run(Migration(), units, range(1, 12))[10]
    assert "host A is at 32% (cpu)" in action.reason  # 1.3 of 4


@pytest.mark.parametrize("policy", [Migration(), RandomChoice()])
def test_on_one_host_it_says_so_once_and_does_nothing(policy):
    found = run(policy, two_units, range(1, 40), hosts=HOSTS[:1])
    assert list(found) == [1]
    (advice,) = found[1]
    assert isinstance(advice, Advise)
    assert advice.unit == "a"
    assert "only the host 'A' is known" in advice.reason


def test_chance_moves_without_a_reason_and_the_same_seed_chooses_the_same():
    steady = lambda now: {n: [sub(i, "A", 0.01)] for i, n in enumerate("abcdef")}
    runs = [run(RandomChoice(seed=seed), steady, range(1, 41)) for seed in (1, 1, 2)]
    chosen = [[(now, a[0].unit, a[0].host) for now, a in found.items()] for found in runs]
    assert chosen[0] == chosen[1] != chosen[2]
    assert len({unit for _, unit, _ in chosen[0]}) > 1
    assert next(iter(runs[0].values()))[0].reason.startswith("drawn by chance; host A is at 60% (cpu)")
    assert not run(RandomChoice(probability=0.0), steady, range(1, 41))


def simulated(policy, hosts):
    from esault.sim import Host, Model, Operator, Source, simulate

    parts = [Source("rising", lambda t: 60 if t < 15 else 130), Source("even", lambda t: 30)]
    parts += [Operator(n, (s,), 0.008, cpu=1.0) for n, s in (("a", "rising"), ("b", "even"), ("c", "even"))]
    # All begin on the first host.
    return simulate(Model(parts, [Host(n, 1) for n in hosts]), policy, seconds=25)


def test_the_engines_own_judge_carries_moves_out():
    decisions = simulated("migration:d=0.25", "xyz").decisions
    assert decisions
    assert {d.what.split()[0] for d in decisions} == {"migrate"}
    assert {d.outcome for d in decisions} == {"done"}


@pytest.mark.parametrize(
    ("policy", "given"), [("migration", {"fixed", "free"}), ("random", {"fixed", "free"}), ("craa", {"free"})]
)
def test_units_whose_number_is_fixed_are_moved_as_well(policy, given):
    t = Topology("t")
    source = t.spout("source", Items([]))
    source.bolt("fixed", Pass, by_key(), max_parallelism=1, replicas=2).sink("out", Collect())  # its gate is not moved
    source.bolt("free", Pass, by_key())
    assert Scaling(t.plan(), {EVERY_UNIT: policy}, 0.1, print).judges.keys() == given


def test_on_one_host_a_run_says_it_once_and_goes_on():
    run = simulated("migration", "x")
    assert len(run.notices) == 1
    assert "only the host 'x' is known" in run.notices[0]
    assert run.changes == 0


def test_parameters_are_taken_from_a_spec():
    policy = make("migration:d=0.25,limit=0,round=20,memory=false")
    assert isinstance(policy, Migration)
    assert (policy.d, policy.limit, policy.round, policy.memory, policy.period) == (0.25, 0, 20.0, False, 1.0)
    assert isinstance(make("random:seed=7"), RandomChoice)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("migration:period=0", "period=0 must be above 0"),
        ("random:round=0.5", "no longer than round=0.5"),
        ("migration:round=1.5", "twice period=1"),
        ("random:probability=2", "probability=2 must be 0 to 1"),
        ("migration:cpu=no,memory=no,network=no,disk=no", "leave one of them true"),
    ],
)
def test_parameters_that_cannot_be_are_refused(spec, says):
    with pytest.raises(UsageError) as caught:
        make(spec)
    assert says in str(caught.value)


def probed(number, host, now, *delays):
    """A sub-unit whose probes came back since the last report after so long; the newest is what is known as its latency."""
    probes = tuple(ProbeSample(i, now - delay, now) for i, delay in enumerate(delays))
    return sub(number, host, delays[-1], probes=probes)


def test_a_report_is_the_mean_since_the_one_before_and_not_the_newest_probe():
    last_ones_swing = lambda now: {
        "a": [probed(1, "A", now, 0.02, 0.02, 0.01 if now % 2 else 0.03), sub(2, "A", 0.01, cpu=2.0)]
    }
    assert run(Migration(d=0.5), last_ones_swing, range(1, 20)) == {}
    first_ones_grow = lambda now: {
        "a": [probed(1, "A", now, *[0.04 if now >= 5 else 0.01] * 2, 0.01)],
        "b": [sub(2, "A", 0.01, cpu=2.0)],
    }
    found = run(Migration(d=0.5), first_ones_grow, range(1, 12))
    assert [(a.unit, a.host) for a in found[10]] == [("a", "B")]
    assert "grew by 200% of 10 ms" in found[10][0].reason
