"""A throttled unit is slower and loses nothing; what must not wait for it does not."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from commands_asked import change, may_throttle
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from small_bolts import Tuples as Last

from esault import BatchBolt, Bolt, Topology, UsageError, by_key, shuffle
from esault.elasticity.action import Throttle
from esault.flow.worker.rate_cap import HELD
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime


class Echo(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Batches(BatchBolt):
    def process_batch(self, rows):
        self.emit_batch(rows)


def rows(n, keys=50):
    return [(f"k{i % keys}", i) for i in range(n)]


def small(n=3000, bolt=Last, grouping=None, parallelism=1, **options):
    t = Topology("small")
    worker = t.spout("rows", Items(rows(n))).bolt(
        "worker", bolt, grouping=grouping or by_key(), parallelism=parallelism, **options
    )
    worker.sink("out", Collect())
    return t


def cores(local, unit):
    return [local._processes[i].core for i in local.driver.units[unit].subs if local.lives(i)]


def done(local):
    """Tuples that the workers have processed, by the workers themselves."""
    return sum(core.metrics.tuples_in for core in cores(local, "worker"))


def throttle(local, unit, rate, seconds):
    """Until all have heard of it; how much was done before."""
    local.throttle(unit, rate, seconds)
    while not all(core.rate_limit.cap for core in cores(local, unit)):
        assert local.step()
    return sum(core.rate_limit._done() for core in cores(local, unit))


def test_a_bolt_processes_so_many_a_second_and_then_as_many_as_it_can():
    local = LocalRuntime(small(3000))
    before = throttle(local, "worker", 200, 5)
    start = local.clock()
    local.run_for(4.9)
    assert 0.9 * 200 * 4.9 <= done(local) - before <= 200 * 4.9 + 200 * HELD + 1
    local.run_until_drained()
    assert local.clock() - start < 6.0  # the other two thousand at once
    assert Counter(key for key, _ in local.emitted("worker")) == Counter(key for key, _ in rows(3000))
    report = local.report()
    assert (report.units["worker"].tuples_in, report.roots.replayed, report.roots.open) == (3000, 0, 0)


def test_a_spout_reads_so_many_a_second():
    local = LocalRuntime(small(3000))
    before = throttle(local, "rows", 100, 60)
    local.run_for(10)
    assert 900 <= done(local) - before <= 1006
    local.driver.units["rows"].unthrottle(local.clock())
    local.run_until_drained()
    assert len(local.landed("out")) == 3000


@pytest.mark.parametrize(("bolt", "grouping"), [(Echo, shuffle()), (Batches, by_key()), (Echo, by_key())])
def test_all_sub_units_share_the_rate(bolt, grouping):
    local = LocalRuntime(small(3000, bolt, grouping, parallelism=4))
    before = throttle(local, "worker", 400, 60)
    local.run_for(3)
    assert done(local) - before <= 400 * 3 + 400 * HELD + 4
    if grouping == shuffle():  # else one may have fewer keys than its share of the rate
        assert done(local) - before >= 0.9 * 400 * 3
    local.drain()
    local.run_until_drained()


def test_a_rate_below_one_a_second():
    local = LocalRuntime(small(100))
    before = throttle(local, "worker", 0.5, 21)
    local.run_for(20.5)
    assert done(local) - before == 10
    local.run_until_drained()
    assert len(local.landed("out")) == 100


def test_one_that_is_born_gets_what_is_left_of_it():
    local = LocalRuntime(small(100_000))
    local.throttle("worker", 100, 30)
    local.run_for(5)
    local.scale("worker", 4)
    local.wait_for_change("worker")
    assert local.clock() < local.driver.started_at + 29, "the change waited for the end of the throttle"
    unit = local.driver.units["worker"]
    assert unit.width == 4
    local.run_for(1)
    caps = [local._processes[i].core.rate_limit.cap for i in local.sub_units("worker")]
    assert [cap.rate for cap in caps] == [25.0] * 4
    assert all(abs(cap.until - caps[0].until) < 0.5 for cap in caps)
    local.kill(local.sub_units("worker")[0])
    local.run_for(2)
    cap = local._processes[local.sub_units("worker")[0]].core.rate_limit.cap
    assert cap.rate == 25.0
    assert abs(cap.until - caps[1].until) < 0.5


@pytest.mark.parametrize("kind", ["split", "merge", "move"])
@pytest.mark.parametrize("grouping", [by_key(), shuffle()])
def test_a_change_ends_although_next_to_nothing_is_processed(kind, grouping):
    local = LocalRuntime(small(20_000, Echo, grouping, parallelism=2))
    local.run_for(0.001)
    local.throttle("worker", 1, 100)
    local.run_for(2)
    start = local.clock()
    getattr(local, kind)("worker", local.sub_units("worker")[0])
    while local.driver.units["worker"].change is not None:
        if not local.step():
            local.wait()
        assert local.clock() - start < 5
    local.driver.units["worker"].unthrottle(local.clock())
    local.run_until_drained()
    assert len(local.landed("out")) == 20_000
    assert local.report().roots.replayed == 0


def test_a_drain_does_not_wait_for_it():
    local = LocalRuntime(small(20_000))
    local.throttle("worker", 1, 1000)
    local.run_for(1)
    start = local.clock()
    local.drain()
    local.run_until_drained()
    assert local.clock() - start < 5
    report = local.report()
    assert report.ended == "drained"
    assert report.roots.open == 0


def test_ticks_and_status_reports_go_on():
    class Ticks(Bolt):
        def process(self, key, value):
            pass

        def tick(self, now):
            self.emit("tick", 1)

    local = LocalRuntime(small(5000, Ticks, tick_every=0.5))
    local.throttle("worker", 1, 100)
    local.run_for(10)
    assert len(local.emitted("worker")) >= 15
    assert local.driver.units["worker"].measurements.counts.backlog > 0


def test_probes_are_answered_and_tell_how_long_a_tuple_waits():
    local = LocalRuntime(small(20_000), policies={"worker": "esault:overload_time=1000,underload_time=1000"})
    throttle(local, "worker", 20, 100)
    local.run_for(10)
    (worker,) = cores(local, "worker")
    source = local.driver.scaling.sampler._sources[worker.incarnation]
    assert local.clock() - source.counters[-1].at < 0.3
    assert source.counters[-1].backlog >= worker.reader.waiting > 0
    assert source.delay is None or source.delay > 1.0
    local.stop_at_once()


def test_a_policy_throttles():
    class Slows:
        def decide(self, view):
            return [] if view.since_start > 1.5 else [Throttle("to see whether it can", 100.0, 5.0)]

    local = LocalRuntime(small(20_000), policies={"worker": "probe"})
    local.driver.scaling.judges["worker"].policy = Slows()
    throttle(local, "rows", 1000, 100)
    local.run_for(3)
    before = done(local)
    local.run_for(3)
    assert 0.9 * 300 <= done(local) - before <= 300 + 100 * HELD + 1
    assert any("throttle to 100/s for 5 s" in record.what for record in local.driver.scaling.log)
    local.stop_at_once()


def test_a_checkpoint_under_a_throttle_is_taken_and_the_run_ends_as_ever():
    settings = Settings(delivery="eo", checkpoint_every=1.0)
    local = LocalRuntime(small(3000), settings=settings)
    local.throttle("worker", 400, 5)
    local.run_for(5)
    assert local.driver.run_checkpoints.taken >= 1
    local.run_until_drained()
    assert sorted(r.value for r in local.landed("out") if r.key == "k0") == list(range(1, 61))


def test_all_that_go_back_to_a_checkpoint_are_still_throttled():
    local = LocalRuntime(small(50_000), settings=Settings(delivery="eo", checkpoint_every=1.0))
    local.throttle("worker", 100, 60)
    local.run_for(5)
    local.kill(local.sub_units("worker")[0])
    local.run_for(5)
    (core,) = [local._processes[i].core for i in local.sub_units("worker")]
    assert core.rate_limit.cap.rate == 100
    assert 49.9 < core.rate_limit.cap.until - local.clock() <= 50


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        (("nobody", 1, 1), "there is no unit 'nobody'; there are: rows, worker"),
        (("worker", 0, 1), "its rate is a number of tuples a second above 0, not 0"),
        (("worker", -5.0, 1), "its rate is a number of tuples a second above 0, not -5.0"),
        (("worker", float("inf"), 1), "its rate is"),
        (("worker", float("nan"), 1), "its rate is"),
        (("worker", True, 1), "its rate is"),
        (("worker", "5", 1), "its rate is a number of tuples a second above 0, not '5'"),
        (("worker", 5, 0), "its time is a number of seconds above 0, not 0"),
        (("worker", 5, float("inf")), "its time is"),
    ],
)
def test_what_cannot_be_is_one_clear_line_and_changes_nothing(wish, text):
    local = LocalRuntime(small(50))
    with pytest.raises(UsageError, match=text):
        local.throttle(*wish)
    assert not local.driver.units["worker"].outbox
    local.run_until_drained()
    with pytest.raises(UsageError, match="is not running"):
        local.throttle("worker", 1, 1)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.booleans())
@example(seed=6909, kills=True)
@example(seed=9032, kills=True)
def test_whatever_is_throttled_and_changed_and_killed_nothing_is_missing(done, seed, kills):
    order = random.Random(seed)
    local = LocalRuntime(small(2000, Last, parallelism=2), seed=seed)
    start = local.clock()
    while local.driver.phase != "ended":
        if local.driver.phase == "running":
            if order.random() < 0.02:
                unit, rate = order.choice(["rows", "worker"]), order.choice([5, 300, 3000])
                seconds = order.random() * 3
                if may_throttle(local):
                    local.throttle(unit, rate, seconds)
                    done.counts["throttle"] += 1
            if order.random() < 0.02:
                change(local, "worker", "scale", order.randint(1, 4))
            living = [i for i in local.driver.units["worker"].subs if local.lives(i)]
            if kills and living and order.random() < 0.005:
                local.kill(order.choice(living))
                kills = False
        if not local.step():
            local.wait()
        assert local.clock() - start < 300, "stuck"
    assert local.driver.failure is None
    done.of(local, "rescale", "death", "throttle")
    if local.driver.deaths == 0:
        expected = [(f"k{k}", n) for k in range(50) for n in range(1, 41)]
        assert sorted((r.key, r.value) for r in local.landed("out")) == sorted(expected)
        assert local.report().roots.replayed == 0
    else:
        assert len(local.landed("out")) >= 2000  # what the dead one had counted since its last word is in no report
        assert local.report().roots.open == 0
