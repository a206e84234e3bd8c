"""Checkpoints on LocalRuntime: each is a consistent cut, whatever happens around it."""

from __future__ import annotations

import random
from collections import Counter

import depth
import pytest
from commands_asked import checkpoint, some_change
from counting import Count, Landed, Nothing, Split, text, totals, words
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_change_machine import Fed

from esault import Bolt, Topology, TopologyFailed, UsageError, by_key, shuffle
from esault.messages.settings import Settings
from esault.payload.codec import Codec
from esault.testing import LocalRuntime

pytestmark = pytest.mark.usefixtures("subscales")

LINES = 1500 if depth.PROFILE == "deep" else 800
CODEC = Codec()


def diamond():
    """Two ways of different length to one unit: a cut must wait for both."""
    t = Topology("diamond")
    lines = t.spout("lines", Nothing())
    left = lines.bolt("split", Split, grouping=shuffle(), parallelism=2)
    right = lines.bolt("other", Split, grouping=shuffle()).map(lambda n: n)
    t.bolt("count", Count, inputs={left: by_key(), right: by_key()}, parallelism=2).sink("table", Landed())
    return t


def states(local, unit, number):
    """key -> total, as of this checkpoint: later pieces of a sub-unit over earlier ones, the base first."""
    found = {}
    kept = next(kept for kept in local.kept if kept.number == number)
    for chain in kept.units[unit].chains:
        items = {}
        for piece in chain:
            items.update(local.state_store.pieces[piece.name])
        for key, state in items.items():
            if state is not None:
                assert key not in found, f"{key} is in two sub-units"
                found[key] = CODEC.unpack(state)["total"]
    return found


def read(kept):
    """Rows before the cut."""
    return CODEC.unpack(kept.units["lines"].positions[0])[1]


def check(local, rows, copies=1):
    for kept in local.kept:
        want = Counter({word: n * copies for word, n in totals(rows[: read(kept)]).items()})
        assert states(local, "count", kept.number) == want, kept.number


def walk(local, order, unit="count", kills=0, most_seconds=100.0, rate=0.4, kill_rate=0.02):
    """Run to the end with checkpoints, changes of one unit and deaths."""
    start = local.clock()
    while local.driver.phase != "ended":
        if local.driver.phase == "running" and order.random() < rate:
            if order.random() < 0.7:
                checkpoint(local)
            else:
                some_change(local, order, [unit])
        if kills and local.driver.phase == "running" and order.random() < kill_rate:
            subs = [i for each in local.driver.units.values() for i in each.subs if local.lives(i)]
            # after three in vain the topology is given up, which is another test's
            subs += [i for i in local.ack_servers() if local.lives(i)]
            if subs and local.driver.restores.in_vain < 3:
                local.kill(order.choice(subs))
                kills -= 1
        if not local.step():
            local.wait()
        changing = any(each.moving for each in local.driver.units.values())
        assert not (changing and local.driver.checkpoints.current is not None)
        assert local.clock() - start < most_seconds, "stuck"
    assert local.driver.failure is None, local.driver.failure


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from([words, diamond]))
@example(seed=5, topology=words)  # a rescale, a split and a move
@example(seed=0, topology=diamond)  # a merge and a split
@example(seed=937, topology=words)
def test_every_checkpoint_is_a_consistent_cut_also_between_live_changes(done, seed, topology):
    rows = text(LINES)
    options = Settings(delivery="eo", max_pending=4, root_rows=16)
    local = LocalRuntime(topology(), spouts={"lines": rows}, seed=seed, settings=options)
    walk(local, random.Random(seed))
    done.of(local, "split", "merge", "move", "rescale", "checkpoint")
    copies = 2 if topology is diamond else 1
    assert local.kept
    check(local, rows, copies)
    seen = Counter()
    for word, total in local.emitted("count"):
        assert total == seen[word] + 1
        seen[word] = total
    assert seen == Counter({word: n * copies for word, n in totals(rows).items()})


def test_a_later_checkpoint_writes_what_has_changed_since():
    rows = [("f", f"w{i}") for i in range(1000)] + [("f", "w1 w2")] * 50 + [("f", "w3")] * 50
    options = Settings(delivery="eo", max_pending=1, root_rows=10)
    local = LocalRuntime(words(counters=1), spouts={"lines": rows}, settings=options)
    for until in (1000, 1050, 1100):
        while sum(1 for _ in local.emitted("split")) < until:
            local.step()
        local.checkpoint()
        while local.driver.checkpoints.current is not None:
            if not local.step():
                local.wait()
    first, second, third = (kept.units["count"].chains[0][-1] for kept in local.kept)
    assert first.base
    assert first.keys >= 1000
    assert not second.base
    assert not third.base
    assert second.keys < 100
    assert third.keys < 100
    check(local, rows)


def test_a_checkpoint_that_somebody_does_not_answer_is_given_up_and_the_next_one_holds():
    rows = text(LINES)
    options = Settings(delivery="eo", max_pending=4, root_rows=16)
    local = LocalRuntime(words(), spouts={"lines": rows}, settings=options)
    while len(local.emitted("count")) < 100:
        local.step()
    frozen = local.sub_units("count")[0]
    local.freeze(frozen)
    local.checkpoint()
    local.run_for(31.0)
    assert local.driver.checkpoints.current is None
    local.thaw(frozen)
    for _ in range(3):
        local.step()
    number = local.checkpoint()
    local.run_until_drained()
    assert next(kept.number for kept in local.kept) == number
    check(local, rows)


def test_no_change_begins_while_a_checkpoint_is_taken_nor_the_reverse():
    local = LocalRuntime(words(), spouts={"lines": text(LINES)}, settings=Settings(delivery="eo", root_rows=16))
    while len(local.emitted("count")) < 100:
        local.step()
    local.checkpoint()
    with pytest.raises(UsageError, match="a checkpoint is being taken"):
        local.scale("count", 3)
    while local.driver.checkpoints.current is not None:
        local.step()
    local.scale("count", 3)
    with pytest.raises(UsageError, match="no checkpoint can be taken now"):
        local.checkpoint()
    local.run_until_drained()


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from([words, diamond]), st.integers(1, 5), st.sampled_from([0, 1]))
@example(seed=299, topology=words, kills=3, ackers=1)
@example(seed=14635, topology=words, kills=4, ackers=0)
def test_whoever_dies_state_and_table_are_as_if_each_tuple_had_been_processed_once(done, seed, topology, kills, ackers):
    rows = text(LINES)
    options = Settings(delivery="eo", max_pending=4, root_rows=16, ackers=ackers)
    local = LocalRuntime(topology(), spouts={"lines": rows}, seed=seed, settings=options)
    walk(local, random.Random(seed), kills=kills)
    done.of(local, "change", "checkpoint", "death")
    copies = 2 if topology is diamond else 1
    want = Counter({word: n * copies for word, n in totals(rows).items()})
    landed = local.landed("table")
    assert Counter(row.key for row in landed) == want
    for word, n in want.items():
        assert sorted(row.value for row in landed if row.key == word) == list(range(1, n + 1))
    assert states(local, "count", local.kept[-1].number) == want


def test_what_dies_again_and_again_without_a_checkpoint_in_between_ends_the_topology():
    local = LocalRuntime(words(), spouts={"lines": text(LINES)}, settings=Settings(delivery="eo", root_rows=16))
    for _ in range(4):
        while local.driver.phase != "running" or not all(local.lives(i) for i in local.sub_units("count")):
            local.step()
        local.kill(local.sub_units("count")[0])
        local.step()
    with pytest.raises(
        TopologyFailed, match="3 times in a row everything went back to a checkpoint and none was completed"
    ):
        local.run_until_drained()


class Total(Bolt):
    """Says at its end what it has counted."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value

    def finish(self):
        self.emit(self.key, self.total)


def test_what_had_finished_before_a_checkpoint_is_not_changed_after_it_and_finishes_once():
    feed, other = {"rows": [(n % 20, 1) for n in range(200)], "ended": True}, {"rows": [], "ended": False}
    t = Topology("ended")
    t.spout("rows", Fed(feed)).bolt("total", Total, grouping=by_key(), parallelism=2).sink("totals", Landed())
    t.spout("other", Fed(other)).sink("rest", Landed())  # keeps the run alive
    local = LocalRuntime(t, settings=Settings(delivery="eo"))
    local.run_for(1.0)
    local.checkpoint()
    local.run_for(1.0)
    assert len(local.landed("totals")) == 20
    local.kill(local.sub_units("total")[0])
    refused, until = set(), local.clock() + 1.0
    while local.clock() < until:  # also before the ends of its inputs have come once more
        try:
            local.split("total", local.sub_units("total")[0])
        except UsageError as error:
            refused.add(str(error))
        local.step() or local.wait()
    assert any("ending" in text for text in refused)
    local.checkpoint()
    other["ended"] = True
    local.run_until_drained()
    assert len(local.kept) >= 2 and local.report().restores
    assert sorted((row.key, row.value) for row in local.landed("totals")) == [(n, 10) for n in range(20)]
