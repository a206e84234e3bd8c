"""Copies of a bolt: whoever dies, each row lands once; and what is refused."""

from __future__ import annotations

import os
import random

import depth
import pytest
from commands_asked import CHANGES, change
from counting import Landed, Nothing, Split, text
from twins import LINES, Tally, counted, run_out, runtime, step, twins, until, walk, whole, wrong

from esault import BatchBolt, Bolt, Grouping, Topology, broadcast, by_key, partial_key, shuffle, single
from esault.control.units.rescale_table import RescaleState
from esault.elasticity.action import Split as SplitWish
from esault.elasticity.edit import edited
from esault.elasticity.sampler import Sampler
from esault.errors import TopologyError, UsageError
from esault.messages.settings import Settings
from esault.testing import LocalRuntime

SEEDS = range(int(os.environ.get("ESAULT_PROOF", "0")) or (12 if depth.PROFILE == "deep" else 6))


class Echo(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def some_kills(seed, units):
    order = random.Random(seed * 7 + 1)
    return [(order.randint(0, 2300), order.choice(units)) for _ in range(order.randint(1, 4))]


def some_changes(local, order):
    """Wishes at random, where they can be; each is left somewhere on its way."""
    for _ in range(order.randint(0, 2)):
        kind, name = order.choice(CHANGES), order.choice(["count", "count", "count~1", "split"])
        change(local, name, kind, order.randint(1, 4) if kind == "scale" else order.choice(local.sub_units(name)))
        for _ in range(order.randint(0, 40)):
            step(local)


def widths(seed):
    order = random.Random(seed)
    return {"counters": order.randint(1, 3), "splitters": order.randint(1, 3)}


def copies_made(local):
    return [c for u in local.driver.units.values() for c in u.changes if c.kind == "copy"]


def test_without_a_death_each_row_comes_once_and_both_copies_count_all():
    local = runtime(1)
    run_out(local)
    assert wrong(local, 1) == []
    assert len(local.emitted("count")) == len(local.emitted("count~1")) == 8 * LINES
    assert len(local.emitted("count~merger")) == 8 * LINES
    assert not copies_made(local)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_death_of_a_copy_loses_repeats_and_replays_nothing(done_in_all, seed):
    local = walk(seed, some_kills(seed, ["count", "count~1"]), **widths(seed))
    done_in_all.of(local, "copy")
    assert wrong(local, seed) == []
    assert local.report().roots.replayed == 0
    assert sum(unit.state_lost for unit in local.report().units.values()) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_so_does_a_death_in_the_middle_of_changes(done_in_all, seed):
    local = walk(seed, some_kills(seed, ["count", "count~1"]), between=some_changes, **widths(seed))
    done_in_all.of(local, "change", "copy")
    assert wrong(local, seed) == []
    assert local.report().roots.replayed == 0
    for unit in local.driver.units.values():
        unit.table.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_two_of_three_copies_may_die_at_once(done_in_all, seed):
    local = runtime(seed, replicas=3, **widths(seed))
    order = random.Random(seed)
    for at in sorted(order.randint(0, 2000) for _ in range(2)):
        reached = until(local, lambda at=at: whole(local) and counted(local) >= at)
        if not reached or any(local.driver.units[name].finishing for name in ("count", "count~1", "count~2")):
            break
        for name in order.sample(["count", "count~1", "count~2"], 2):
            if local.lives(local.sub_units(name)[0]):
                local.kill(local.sub_units(name)[0])
        until(local, lambda: all(local.lives(i) for u in local.driver.units.values() for i in u.subs))
    run_out(local)
    done_in_all.of(local, "copy")
    assert wrong(local, seed) == []
    assert local.report().roots.replayed == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_whoever_dies_whenever_nothing_is_missing(done_in_all, seed):
    kills = some_kills(seed, ["count", "count~1", "count~merger", "split", "lines"])
    local = walk(seed, kills, between=some_changes, singly=False, **widths(seed))
    done_in_all.of(local, "change", "copy", "death")
    assert wrong(local, seed, exactly=False) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_shuffled_copies_without_state_as_well(done_in_all, seed):
    kills = some_kills(seed, ["count", "count~1"])
    local = walk(seed, kills, between=some_changes, grouping=shuffle(), bolt=Echo, **widths(seed))
    done_in_all.of(local, "change", "death")
    assert wrong(local, seed, ends=False) == []
    assert local.report().roots.replayed == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_replicas_behind_replicas(done_in_all, seed):
    t = Topology("twice")
    split = t.spout("lines", Nothing()).bolt("split", Split, grouping=shuffle(), parallelism=2, replicas=2)
    count = split.bolt("count", Tally, grouping=by_key(), parallelism=2, replicas=2, streams=("totals",))
    count.sink("table", Landed())
    count["totals"].sink("ends", Landed())
    settings = Settings(max_pending=4, root_rows=16)
    local = LocalRuntime(t, spouts={"lines": text(LINES, seed)}, seed=seed, settings=settings)
    order = random.Random(seed)
    for _ in range(3):
        at = order.randint(0, 2300)
        until(local, lambda at=at: len(local.emitted("count")) >= at and whole(local))
        if local.driver.phase != "running":
            break
        name = order.choice(["split", "split~1", "count", "count~1"])
        chosen = order.choice(local.sub_units(name))
        if local.lives(chosen):
            local.kill(chosen)
            until(local, lambda: chosen not in local.driver.units[name].subs)
    run_out(local)
    done_in_all.of(local, "copy")
    assert wrong(local, seed) == []
    assert local.report().roots.replayed == 0


def test_a_move_of_one_copy_leaves_the_other_processing():
    local = runtime(3)
    until(local, lambda: len(local.emitted("count")) > 300)
    old = local.sub_units("count")[0]
    local.move("count", old)
    other = local.sub_units("count~1")
    # Nobody hears of the move: what it holds stays held, and the stream goes on.
    unit = local.driver.units["count"]
    until(local, lambda: unit.rescaling.state is RescaleState.MOVING)
    local.freeze(old)
    landed = len(local.emitted("count~merger"))
    until(local, lambda: len(local.emitted("count~merger")) > landed + 200)
    assert local.sub_units("count~1") == other
    local.thaw(old)
    run_out(local)
    assert wrong(local, 3) == []
    assert [c.kind for c in unit.changes] == ["move"]


def test_what_the_gate_remembers_is_forgotten_when_it_is_done():
    local = runtime(4, settings=Settings(max_pending=4, root_rows=16, commit_every=0.01))
    most = 0
    until(local, lambda: counted(local) > 0)
    (merger,) = local.sub_units("count~merger")
    core = local._processes[merger].core

    def look():
        nonlocal most
        most = max(most, len(core.deduplicator))
        return False

    until(local, look)
    assert wrong(local, 4) == []
    assert len(core.deduplicator) <= len(local.landed("ends")) + most


def test_views_have_the_samples_of_all_replicas():
    local = runtime(5)
    until(local, lambda: counted(local) > 100)
    view = Sampler().unit(local.driver.units["count"], ("lines",), local.now(), 0.5, False)
    assert [s.replica for s in view.samples] == [0, 0, 1, 1]
    assert [s.sub_unit for s in view.samples] == [*local.sub_units("count"), *local.sub_units("count~1")]
    assert view.width == 2
    assert [s.replica for s in view.first_replica.samples] == [0, 0]


def test_copies_are_scaled_together_and_moved_alone():
    local = runtime(6)
    until(local, lambda: counted(local) > 100)
    local.scale("count", 3)
    local.wait_for_change("count")
    local.wait_for_change("count~1")
    assert len(local.sub_units("count")) == len(local.sub_units("count~1")) == 3
    before = local.sub_units("count")
    local.move("count", local.sub_units("count~1")[1])  # a policy names it by the unit
    local.wait_for_change("count~1")
    assert local.sub_units("count") == before
    run_out(local)
    assert wrong(local, 6) == []


def test_what_a_policy_wants_is_done_to_all_replicas():
    local = runtime(8)
    until(local, lambda: counted(local) > 100)
    unit = local.driver.units["count"]
    first = local.sub_units("count")[0]
    edit = edited(unit.table, [SplitWish("it is busy", first)], ())
    unit.adopt(edit.table, edit.news, local.now(), edit.kind, "it is busy", "mine")
    local.wait_for_change("count")
    local.wait_for_change("count~1")
    starts = [[start for start, _ in local.driver.units[name].table.snapshot()[1]] for name in ("count", "count~1")]
    assert starts[0] == starts[1] == [start for start, _ in edit.table.snapshot()[1]]
    run_out(local)
    assert wrong(local, 8) == []


def test_a_policy_judges_the_first_replica_and_all_are_probed():
    local = LocalRuntime(
        twins(),
        spouts={"lines": text(LINES, 10)},
        seed=10,
        policies={"count": "probe"},
        settings=Settings(max_pending=4),
    )
    until(local, lambda: counted(local) > 100)
    targets = local.driver.scaling.targets(local.driver.units)
    assert set(targets) == {*local.sub_units("count"), *local.sub_units("count~1")}
    assert set(local.driver.scaling.judges) == {"count"}
    run_out(local)
    assert wrong(local, 10) == []


@pytest.mark.slow
def test_copies_that_are_divided_in_different_ways_are_scaled_and_not_split():
    local = runtime(9, counters=3, lines=600, settings=Settings(max_pending=2, root_rows=2))
    until(local, lambda: counted(local) > 100)
    unit, other = local.driver.units["count"], local.driver.units["count~1"]
    other.alone.merge(local.sub_units("count~1")[0], local.now())  # as if the other's had been dropped
    local.wait_for_change("count~1")
    with pytest.raises(UsageError, match="divided in different ways.* esault scale count N"):
        unit.split(local.sub_units("count")[0], local.now())
    local.scale("count", 4)
    local.wait_for_change("count")
    local.wait_for_change("count~1")
    assert len(local.sub_units("count")) == len(local.sub_units("count~1")) == 4
    run_out(local)
    assert wrong(local, 9, lines=600) == []


def test_a_gate_cannot_be_changed_and_a_unit_whose_copy_is_down_cannot_either():
    local = runtime(7)
    until(local, lambda: counted(local) > 100)
    with pytest.raises(UsageError, match="merger of 'count'"):
        local.move("count~merger", local.sub_units("count~merger")[0])
    victim = local.sub_units("count~1")[0]
    local.kill(victim)
    until(local, lambda: local.driver.units["count~1"].down)
    with pytest.raises(UsageError, match="replicas is being brought up to date; try again"):
        local.scale("count", 3)
    run_out(local)
    assert wrong(local, 7) == []


class Batches(BatchBolt):
    def process_batch(self, rows):
        self.emit_batch(rows)


class Mine(Grouping):
    def choose(self, key, value, sub_units):
        return 0


@pytest.mark.parametrize(
    ("bolt", "grouping", "options", "said"),
    [
        (Echo, by_key(), {"replicas": 0}, "from 1, no replicas, to 4"),
        (Echo, by_key(), {"replicas": True}, "from 1, no replicas, to 4"),
        (Echo, by_key(), {"replicas": 9}, "from 1, no replicas, to 4"),
        (Batches, by_key(), {}, "a BatchBolt has no replicas"),
        (Echo, single(), {}, "takes by_key\\(\\) or shuffle\\(\\)"),
        (Echo, partial_key(), {}, "takes by_key\\(\\) or shuffle\\(\\)"),
        (Echo, broadcast(), {}, "takes by_key\\(\\) or shuffle\\(\\)"),
        (Echo, Mine(), {}, "takes by_key\\(\\) or shuffle\\(\\)"),
        (Echo, by_key(), {"tick_every": 1.0}, "leave tick_every out, or replicas"),
        (Echo, by_key(), {"buffer": 100, "overflow": "drop"}, "leave buffer out, or replicas"),
        (Echo, by_key(), {"expire_after": 1.0}, "leave expire_after out, or replicas"),
        (Tally, shuffle(), {"streams": ("totals",)}, "Tally defines finish\\(\\)"),
    ],
)
def test_what_copies_cannot_be_is_said(bolt, grouping, options, said):
    t = Topology("t")
    stream = t.spout("lines", Nothing())
    with pytest.raises(TopologyError, match=said):
        stream.bolt("count", bolt, grouping=grouping, **{"replicas": 2, **options})


def test_rows_below_a_broadcast_cannot_be_told_apart():
    t = Topology("t")
    all_over = t.spout("lines", Nothing()).bolt("all", Echo, grouping=broadcast(), parallelism=2)
    all_over.bolt("count", Echo, grouping=by_key(), replicas=2).sink("table", Landed())
    with pytest.raises(TopologyError, match="unit 'all' before it takes its tuples by"):
        t.plan()


def test_copies_whose_rows_nobody_takes_are_of_no_use():
    t = Topology("t")
    t.spout("lines", Nothing()).bolt("count", Echo, grouping=by_key(), replicas=2)
    with pytest.raises(TopologyError, match="nothing takes what it emits"):
        t.plan()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(delivery="eo"), "--checkpoint"),
        (Settings(delivery="none"), "--acks off"),
        (Settings(ackers=1), "--ackers 1"),
    ],
)
def test_copies_need_acks_with_the_owners_and_no_going_back(settings, said):
    with pytest.raises(UsageError, match=said):
        LocalRuntime(twins(), settings=settings)


def test_a_factory_whose_bolt_has_an_end_of_its_own_is_found_when_it_runs():
    t = Topology("t")
    count = t.spout("lines", Nothing()).bolt("count", lambda: Tally(), grouping=shuffle(), replicas=2)
    count.sink("table", Landed())
    local = LocalRuntime(t, spouts={"lines": text(3)})
    for _ in range(20):
        local.step()
    assert "defines finish() and comes by shuffle()" in local.driver.failure


def test_whom_placement_is_to_keep_apart():
    plan = twins(replicas=3).plan()
    assert plan.apart("count~1") == ("count", "count~2")
    assert plan.apart("split") == plan.apart("count~merger") == ()
