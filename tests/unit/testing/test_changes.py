"""Live changes on LocalRuntime: seeded walks of splits, merges, moves and kills; then count."""

from __future__ import annotations

import random
from collections import Counter

import depth
import pytest
from commands_asked import change, some_change
from counting import Count, Landed, Nothing, Split, missing, text, totals, words
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from esault import Bolt, Topology, UsageError, by_key, shuffle, single
from esault.messages.settings import Settings
from esault.sources import Items
from esault.testing import LocalRuntime

pytestmark = pytest.mark.usefixtures("subscales")


def dies(local, victim, unborn):
    """Kill it, unless it were the third of a unit to die before it has started: three in a row end the run, as they should."""
    for name in ("split", "count"):
        record = local.driver.units[name].subs.get(victim)
        if record is not None and record.started_at is None:
            if unborn[name] == 2:
                return False
            unborn[name] += 1
    local.kill(victim)
    return True


def walk(local, order, kills=0, kill_rate=0.02, most_seconds=200.0):
    """Run to the end, changing units at random and killing processes of bolts and ack servers."""
    start, unborn = local.clock(), Counter()
    while local.driver.phase != "ended":
        if local.driver.phase == "running" and order.random() < 0.05:
            some_change(local, order, ["count", "split"], most=5)
        if kills and order.random() < kill_rate:
            bolts = [i for u in ("split", "count") for i in local.driver.units[u].subs]
            living = [i for i in (*bolts, *local.ack_servers()) if local.lives(i)]
            if living:
                kills -= dies(local, order.choice(living), unborn)
        if not local.step():
            local.wait()
        assert local.clock() - start < most_seconds, "stuck"
    assert local.driver.failure is None, local.driver.failure


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30))
@example(seed=354)  # a merge and a split
@example(seed=381)  # a merge and a move
@example(seed=361)  # a rescale and a merge
def test_planned_changes_lose_and_repeat_nothing_and_keep_the_order_of_each_key(done, seed):
    rows = text(600)
    local = LocalRuntime(words(), spouts={"lines": rows}, seed=seed)
    walk(local, random.Random(seed))
    done.of(local, "split", "merge", "move", "rescale")
    seen = Counter()
    for word, total in local.emitted("count"):
        assert total == seen[word] + 1  # neither lost nor doubled nor out of order nor from fresh state
        seen[word] = total
    assert seen == totals(rows)
    assert local.report().roots.replayed == 0


class Numbered(Bolt):
    def __init__(self):
        self.count = 0

    def process(self, key, value):
        self.count += 1
        self.emit(key, self.count)


class InOrder(Bolt):
    """Emits what does not come behind the number before it."""

    def __init__(self):
        self.last = 0

    def process(self, key, value):
        if value != self.last + 1:
            self.emit(key, (self.last, value))
        self.last = value


@pytest.mark.parametrize("seed", depth.chosen(range(8), range(3)))
def test_rows_of_a_key_that_moves_stay_in_order_through_the_next_unit(seed):
    t = Topology("ordered")
    numbered = t.spout("rows", Items([(f"k{n % 7}", n) for n in range(1200)])).bolt("numbered", Numbered, by_key())
    numbered.bolt("in_order", InOrder, by_key(), parallelism=2).sink("wrong", Landed())
    options = Settings(max_pending=32, root_rows=16, frame_rows=4)
    local, order = LocalRuntime(t, seed=seed, settings=options), random.Random(seed)
    while local.driver.phase != "ended":
        if local.driver.phase == "running" and order.random() < 0.1:
            some_change(local, order, ["numbered", "numbered", "in_order"], most=4)
        local.step() or local.wait()
    assert local.landed("wrong") == []
    assert local.report().units["in_order"].tuples_in == 1200


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(1, 6), st.sampled_from([0, 0, 1, 2]), st.sampled_from([0.005, 0.05]))
@example(seed=133, kills=5, ackers=2, kill_rate=0.05)
@example(seed=14635, kills=2, ackers=2, kill_rate=0.005)
@example(seed=215, kills=4, ackers=0, kill_rate=0.05)
@example(seed=40381138, kills=3, ackers=0, kill_rate=0.05)
def test_whoever_dies_at_whatever_step_nothing_is_missing(done, seed, kills, ackers, kill_rate):
    rows = text(600)
    local = LocalRuntime(words(), spouts={"lines": rows}, seed=seed, settings=Settings(ackers=ackers))
    walk(local, random.Random(seed), kills, kill_rate)
    done.of(local, "split", "merge", "move", "rescale", "death")
    assert not missing(local, 600)
    for unit in local.driver.units.values():
        if unit.table is not None:
            unit.table.check()


@pytest.mark.parametrize("unit", ["split", "count"])
@pytest.mark.parametrize("seed", depth.chosen(range(10), range(3)))
def test_who_dies_while_others_are_being_built_is_built_again(unit, seed):
    rows = text(50)
    local = LocalRuntime(words(), spouts={"lines": rows}, seed=seed)
    while local.driver.units[unit].table is None:
        local.step()
    local.kill(local.sub_units(unit)[0])
    local.run_until_drained()
    assert local.driver.failure is None
    assert not missing(local, 50)


def test_a_split_moves_state_and_says_so():
    rows = text(2000)
    local = LocalRuntime(words(counters=1), spouts={"lines": rows})
    local.run_for(0.0)
    while not local.emitted("count"):
        local.step()
    local.split("count", local.sub_units("count")[0])
    local.wait_for_change("count")
    assert len(local.sub_units("count")) == 2
    local.run_until_drained()
    (change,) = local.driver.units["count"].changes
    assert (change.kind, change.before, change.after) == ("split", 1, 2)
    assert change.moved_keys > 0
    assert change.moved_bytes > 0
    assert not change.dropped
    (reported,) = local.report().as_dict()["changes"]
    assert (reported["unit"], reported["kind"], reported["from"], reported["to"]) == ("count", "split", 1, 2)
    assert reported["moved_keys"] == change.moved_keys
    assert local.report().units["count"].parallelism[-1][1] == 2


def test_versions_of_a_table_only_grow():
    local = LocalRuntime(words(), spouts={"lines": text(20000)})
    unit, versions = local.driver.units["count"], []
    for wish in ("split", "move", "merge"):
        getattr(local, wish)("count", local.sub_units("count")[0])
        local.wait_for_change("count")
        versions.append(unit.table.version)
    assert versions == sorted(set(versions))


def test_a_single_object_moves_with_its_state():
    rows = text(400)
    local = LocalRuntime(words(counters=1, grouping=single()), spouts={"lines": rows})
    while not local.emitted("count"):
        local.step()
    local.move("count", local.sub_units("count")[0])
    local.run_until_drained()
    assert [total for _, total in local.emitted("count")] == list(range(1, 400 * 8 + 1))


@pytest.mark.parametrize(
    ("wish", "text_"),
    [
        (lambda r: r.scale("nobody", 2), "there is no unit 'nobody'; there are: lines, split, count"),
        (lambda r: r.scale("count", 0), "cannot have 0 sub-units"),
        (lambda r: r.scale("count", 4), "its max_parallelism is 3"),
        (lambda r: r.scale("lines", 2), "is a spout"),
        (lambda r: r.scale("split", 20), "slots"),
        (lambda r: r.split("count", 99), "has no sub-unit 99"),
    ],
)
def test_a_wish_that_cannot_be_is_one_clear_line_and_changes_nothing(wish, text_):
    local = LocalRuntime(words(counters=1, max_parallelism=3), spouts={"lines": text(50)})
    with pytest.raises(UsageError, match=text_):
        wish(local)
    local.run_until_drained()
    assert not local.driver.units["count"].changes


def test_a_wish_during_another_change_is_refused():
    local = LocalRuntime(words(counters=1), spouts={"lines": text(50)})
    local.scale("count", 2)
    with pytest.raises(UsageError, match="being changed already"):
        local.scale("count", 3)


def test_a_wish_after_the_end_is_refused():
    local = LocalRuntime(words(counters=1), spouts={"lines": text(5)})
    local.run_until_drained()
    with pytest.raises(UsageError, match="not running"):
        local.scale("count", 2)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("seed", range(12, 24))
def test_a_newcomer_gets_the_tables_that_it_missed(done, done_in_all, seed, few):
    """It sends to two units; one has a new table while the newcomer is still being made known to the other."""
    t = Topology("fork")
    split = t.spout("lines", Nothing()).bolt("split", Split, grouping=shuffle(), parallelism=2)
    for name in ("count", "other"):
        split.bolt(name, Count, grouping=by_key(), parallelism=2).sink(f"{name}s", Landed())
    # Few tuples at a time take so many steps that some change finds its turn in each run.
    options = Settings(max_pending=2, root_rows=2) if few else Settings()
    local = LocalRuntime(t, spouts={"lines": text(150)}, seed=seed, settings=options)
    order = random.Random(seed)
    for _ in range(20_000):
        if local.driver.phase == "ended":
            break
        if local.driver.phase == "running" and order.random() < 0.1:
            unit = order.choice(["split", "split", "count", "other"])
            if order.random() < 0.5:
                change(local, unit, "scale", order.randint(1, 3))
            else:
                change(local, unit, "move", order.choice(local.sub_units(unit)))
        if not local.step():
            local.wait()
    assert local.driver.phase == "ended", "a sub-unit waits for END"
    done_in_all.of(local, "move", "rescale")
    if few:
        done.of(local, "change")
    assert {len(local.landed(f"{name}s")) for name in ("count", "other")} == {8 * 150}
