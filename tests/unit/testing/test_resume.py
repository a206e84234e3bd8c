"""A later run goes on from a checkpoint of an earlier one, on LocalRuntime: also with other widths and changed code."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from commands_asked import checkpoint
from counting import Count, Landed, Nothing, Split, text, totals, words
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_checkpoints import states

from esault import Bolt, EndOfStream, Spout, Topology, UsageError, by_key, shuffle
from esault.control.checkpoints.completed import check_plan, widths
from esault.messages.settings import Settings
from esault.testing import LocalRuntime

EXACTLY = Settings(delivery="eo", max_pending=4, root_rows=16)
LINES = 600


def some(topology, rows, seed, until, **options):
    """A run that is left to itself after a checkpoint was complete behind `until` counts."""
    local = LocalRuntime(topology, spouts={"lines": rows}, seed=seed, settings=EXACTLY, **options)
    order = random.Random(seed)
    while local.driver.phase != "ended":
        if len(local.emitted("count")) >= until and order.random() < 0.2:
            checkpoint(local)
        if local.kept and order.random() < 0.01:
            break
        if not local.step():
            local.wait()
    return local


def go_on(before, topology, rows, seed, **options):
    """Another run in the place of one whose processes are gone; its vault is the same, as a directory would be."""
    later = LocalRuntime(
        topology,
        spouts={"lines": rows},
        seed=seed,
        settings=EXACTLY,
        kept=before.driver.completed,
        last_number=before.driver.checkpoints.newest,
        **options,
    )
    later.state_store = before.state_store
    later._prepared.update(before._prepared)
    later.run_until_drained()
    return later


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(1, 4), st.integers(1, 4), st.integers(50, 4000))
@example(seed=63371, one=4, other=1, until=1870)
@example(seed=654, one=4, other=1, until=500)
@example(seed=63371, one=4, other=1, until=134)
@example(seed=299, one=1, other=2, until=128)
@example(seed=50, one=1, other=4, until=50)
def test_another_run_goes_on_with_another_parallelism_and_counts_everything_once(done, seed, one, other, until):
    rows = text(LINES)
    before = some(words(counters=one), rows, seed, until)
    done.of(before, "went on", "widened", "narrowed")
    if before.driver.phase == "ended":
        return
    done.counts.update({"went on": 1, "widened": other > one, "narrowed": other < one})
    later = go_on(before, words(counters=other), rows, seed, parallelism={"count": other})
    want = totals(rows)
    landed = [*before.landed("table"), *later.landed("table")]
    assert len(later.sub_units("count")) == other
    for word, n in want.items():
        values = sorted(row.value for row in landed if row.key == word)
        # what the earlier run had prepared for its last checkpoint is committed by both, which a real sink sees
        assert set(values) == set(range(1, n + 1))
    assert states(later, "count", later.kept[-1].number) == want
    assert later.kept[0].number > before.driver.completed.number


def test_it_goes_on_as_wide_as_it_was_unless_told_otherwise():
    rows = text(LINES)
    local = LocalRuntime(words(counters=1), spouts={"lines": rows}, settings=EXACTLY)
    while len(local.emitted("count")) < 500:
        local.step()
    local.scale("count", 3)
    local.wait_for_change("count")
    shares = [(high - low) for low, high, _ in local.driver.units["count"].table.intervals()]
    local.checkpoint()
    while not local.kept:
        if not local.step():
            local.wait()
    kept = local.driver.completed
    assert widths(kept, words().plan()) == {"lines": 1, "split": 2, "count": 3}
    later = LocalRuntime(words(counters=1), spouts={"lines": rows}, settings=EXACTLY, kept=kept)
    later.state_store = local.state_store
    while later.driver.phase != "running":
        if not later.step():
            later.wait()
    assert [(high - low) for low, high, _ in later.driver.units["count"].table.intervals()] == shares


class CountWithMore(Bolt):
    """A later version: it has an attribute more, with a default."""

    def __init__(self):
        self.total = 0
        self.longest = 0

    def process(self, key, value):
        self.total += value
        self.longest = max(self.longest, len(key))
        self.emit(key, self.total)


def changed(counter=CountWithMore, name="count"):
    t = Topology("words")
    lines = t.spout("lines", Nothing())
    split = lines.bolt("split", Split, grouping=shuffle(), parallelism=2)
    split.bolt(name, counter, grouping=by_key(), parallelism=2).sink("table", Landed())
    return t


def test_an_attribute_that_a_new_version_adds_has_its_default():
    rows = text(LINES)
    before = some(words(), rows, 1, 1000)
    later = go_on(before, changed(), rows, 1)
    last = {row.key: row.value for row in later.landed("table")}
    assert last == totals(rows)


def test_a_unit_that_vanished_or_changed_its_kind_is_refused_with_the_remedy():
    before = some(words(), text(LINES), 1, 1000)
    kept = before.driver.completed
    check_plan(kept, words().plan(), {})
    with pytest.raises(
        UsageError, match="holds the state of unit 'count', and there is no unit of that name.*--restart"
    ):
        check_plan(kept, changed(name="tally").plan(), {})
    t = Topology("words")
    t.spout("lines", Nothing()).bolt("split", Split, grouping=shuffle()).bolt("count", Count, grouping=shuffle())
    with pytest.raises(UsageError, match="had one object per key .* and has one per sub-unit now"):
        check_plan(kept, t.plan(), {})
    t = Topology("words")
    t.spout("split", Nothing()).bolt("lines", Split, grouping=shuffle()).bolt("count", Count, grouping=by_key())
    with pytest.raises(UsageError, match="unit 'lines' was a spout .* and is a bolt now"):
        check_plan(kept, t.plan(), {})
    with pytest.raises(UsageError, match="one of topology 'words', and this is 'sums'.*--state"):
        check_plan(kept, sums(1).plan(), {})
    with pytest.raises(UsageError, match="spout 'lines' was read by 1 sub-unit in .* cannot go on with 2"):
        check_plan(kept, words().plan(), {"lines": 2})


class Sum(Bolt):
    """One object per sub-unit: says at its end what it has added up."""

    def __init__(self):
        self.sum = 0

    def process(self, key, value):
        self.sum += len(value.split())

    def finish(self):
        self.emit("words", self.sum)


def sums(parallelism):
    t = Topology("sums")
    t.spout("lines", Nothing()).bolt("count", Sum, grouping=shuffle(), parallelism=parallelism).sink("table", Landed())
    return t


@pytest.mark.parametrize(("one", "other"), [(3, 1), (2, 2), (1, 3), (4, 2)])
def test_objects_that_have_no_sub_unit_any_more_are_finished_and_none_is_lost(one, other):
    rows = text(LINES)
    local = LocalRuntime(sums(one), spouts={"lines": rows}, settings=EXACTLY)
    while len(local.emitted("lines")) < 200:
        if not local.step():
            local.wait()
    local.checkpoint()
    while not local.kept:
        if not local.step():
            local.wait()
    later = LocalRuntime(
        sums(other), spouts={"lines": rows}, settings=EXACTLY, kept=local.driver.completed, parallelism={"count": other}
    )
    later.state_store = local.state_store
    later.run_until_drained()
    landed = [row.value for row in later.landed("table")]
    assert sum(landed) == 8 * LINES
    assert len(landed) == max(one, other)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(0, 1500))
@example(seed=14635, until=30)
@example(seed=1549, until=288)
def test_a_run_that_is_ended_by_hand_pauses_at_a_checkpoint_and_another_goes_on(done, seed, until):
    rows = text(LINES)
    local = LocalRuntime(words(), spouts={"lines": rows}, seed=seed, settings=EXACTLY)
    while len(local.emitted("count")) < until and local.driver.phase != "ended":
        if not local.step():
            local.wait()
    local.drain()
    local.run_until_drained()
    done.of(local, "paused")
    done.counts[local.report().ended] += 1
    if local.report().ended == "stopped":  # before anything was read
        assert not local.landed("table")
        return
    kept = local.driver.completed
    if local.report().ended == "drained":
        return
    assert local.report().ended == "paused"
    want = totals(rows[: kept_rows(kept)])
    assert {
        row.key: max(r.value for r in local.landed("table") if r.key == row.key) for row in local.landed("table")
    } == want
    assert len(local.landed("table")) == sum(want.values())
    later = LocalRuntime(words(), spouts={"lines": rows}, seed=seed, settings=EXACTLY, kept=kept)
    later.state_store = local.state_store
    later.run_until_drained()
    assert later.report().ended == "drained"
    landed = Counter(row.key for row in (*local.landed("table"), *later.landed("table")))
    assert landed == totals(rows)


def kept_rows(kept):
    from test_checkpoints import read

    return read(kept)


class Ticker(Spout):
    """Counts up, and knows no positions: whoever opens it anew gets the rest."""

    given = 0

    def read(self, limit):
        if Ticker.given >= 2000:
            raise EndOfStream
        rows = [(Ticker.given + i, "a") for i in range(5)]
        Ticker.given += 5
        return rows


class Seen(Bolt):
    def __init__(self):
        self.times = 0

    def process(self, key, value):
        self.times += 1
        self.emit(key, self.times)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(1, 4))
@example(seed=0, kills=4)
@example(seed=4, kills=4)
def test_a_source_that_cannot_seek_is_spooled_and_nothing_is_lost_or_doubled(done, seed, kills):
    Ticker.given = 0
    t = Topology("ticker")
    t.spout("ticker", Ticker()).bolt("seen", Seen, grouping=by_key(), parallelism=2).sink("table", Landed())
    local = LocalRuntime(t, seed=seed, settings=EXACTLY)
    order = random.Random(seed)
    while local.driver.phase != "ended":
        if local.driver.phase == "running" and order.random() < 0.2:
            checkpoint(local)
        if kills and local.driver.restores.in_vain < 3 and local.driver.phase == "running" and order.random() < 0.01:
            alive = [i for name in ("ticker", "seen") for i in local.driver.units[name].subs if local.lives(i)]
            local.kill(order.choice(alive))
            kills -= 1
        if not local.step():
            local.wait()
    assert local.driver.failure is None
    done.of(local, "checkpoint", "death")
    landed = local.landed("table")
    assert Counter(row.key for row in landed) == Counter(range(2000))
    assert {row.value for row in landed} == {1}
