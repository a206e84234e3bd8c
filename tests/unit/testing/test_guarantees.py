"""What `docs/explanation/guarantees.md` says of runs with checkpoints, where no other test shows it."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import depth
import numpy as np
import pyarrow as pa
import pytest
from commands_asked import change, checkpoint
from counting import Count, Landed, Nothing, Split, text, totals, words
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_checkpoints import states

from esault import (
    BatchBolt,
    Bolt,
    Columns,
    EndOfStream,
    Sink,
    Spout,
    Topology,
    TopologyFailed,
    UsageError,
    by_key,
    partial_key,
    shuffle,
)
from esault.errors import CheckpointError
from esault.messages.checkpoint import Completed
from esault.messages.settings import Settings
from esault.payload.column import plain
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.testing.memory_state_store import MemoryStateStore

pytestmark = pytest.mark.slow  # not in `make quick`

EXACTLY = Settings(delivery="eo", max_pending=4, root_rows=16)
LINES = 500
#: of those that come as time goes by
ROWS = 400 if depth.PROFILE == "deep" else 240


def until_kept(local, number=1):
    while len(local.kept) < number:
        if not local.step():
            local.wait()


def check(local, rows):
    want = totals(rows)
    landed = local.landed("table")
    assert Counter(row.key for row in landed) == want
    for word, n in want.items():
        assert sorted(row.value for row in landed if row.key == word) == list(range(1, n + 1))


@pytest.mark.parametrize("seed", depth.seeds(24))
def test_what_was_prepared_is_committed_although_its_process_is_gone(seed):
    rows = text(LINES)
    local = LocalRuntime(words(), spouts={"lines": rows}, seed=seed, settings=EXACTLY)
    while len(local.emitted("count")) < 1000:
        local.step()
    local.checkpoint()
    # complete, and nobody has heard of it
    while not local.kept:
        local.step()
    told = [message for _, message in local.driver.outbox if isinstance(message, Completed)]
    assert told
    for incarnation in local.sub_units("count"):
        local.kill(incarnation)
    local.run_until_drained()
    check(local, rows)


class Heard(Sink):
    """Only writes: into a list that outlives the process."""

    rows: list = []

    def write(self, rows):
        self.rows.extend(rows)


def test_a_sink_that_only_writes_gets_rows_behind_the_checkpoint_once_more():
    Heard.rows.clear()

    def plan():
        t = Topology("heard")
        lines = t.spout("lines", Items([(i, f"w{i}") for i in range(3000)]))
        lines.bolt("count", Count2, grouping=by_key()).sink("heard", Heard())
        return t.plan()

    local = LocalRuntime(plan, settings=EXACTLY, real=True)
    while len(Heard.rows) < 500:
        local.step()
    local.checkpoint()
    while local.driver.checkpoints.newest == 0:
        local.step()
    before = len(Heard.rows)
    while len(Heard.rows) < before + 200:
        local.step()
    local.kill(local.sub_units("count")[0])
    local.run_until_drained()
    times = Counter(row.key for row in Heard.rows)
    assert set(times) == set(range(3000))
    again = [key for key, n in times.items() if n == 2]
    assert again
    assert min(again) >= 400
    assert max(times.values()) == 2


class Count2(Bolt):
    def __init__(self):
        self.n = 0

    def process(self, key, value):
        self.n += 1
        self.emit(key, self.n)


class AtTheEnd(Bolt):
    """Says what it has when it is finished, and nothing before."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value

    def finish(self):
        self.emit(self.key, self.total)


def ends():
    t = Topology("ends")
    split = t.spout("lines", Nothing()).bolt("split", Split, grouping=shuffle(), parallelism=2)
    total = split.bolt("total", AtTheEnd, grouping=by_key(), parallelism=3)
    total.bolt("after", Count, grouping=by_key(), parallelism=2).sink("table", Landed())
    return t


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(1, 3))
@example(seed=0, kills=3)
@example(seed=3, kills=3)
def test_the_ends_of_elements_come_once_whoever_dies_at_the_end(done, seed, kills):
    rows = text(60)
    local = LocalRuntime(ends(), spouts={"lines": rows}, seed=seed, settings=EXACTLY)
    order = random.Random(seed)
    while local.driver.phase != "ended":
        units = local.driver.units
        if local.driver.phase == "running" and order.random() < 0.1:
            checkpoint(local)
        if units["total"].finishing and kills and order.random() < 0.05 and local.driver.restores.in_vain < 3:
            alive = [i for unit in units.values() for i in unit.subs if local.lives(i)]
            if alive:
                local.kill(order.choice(alive))
                kills -= 1
        if not local.step():
            local.wait()
    assert local.driver.failure is None
    done.of(local, "checkpoint", "death")
    assert {row.key: row.value for row in local.landed("table")} == totals(rows)
    assert len(local.landed("table")) == len(totals(rows))


class Tally(Bolt):
    """Says at each tick what has come since the last one, and forgets it."""

    def __init__(self):
        self.n = 0

    def process(self, key, value):
        self.n += value

    def tick(self, now):
        if self.n:
            self.emit(self.key, self.n)
            self.n = 0

    def finish(self):
        if self.n:
            self.emit(self.key, self.n)


def shaken(done, local, seed, kills, wishes=True):
    """Run to the end with checkpoints, some of which are given up, changes, and kills."""
    order = random.Random(seed)
    while local.driver.phase != "ended":
        now = order.random()
        if local.driver.phase == "running" and now < 0.09:
            if now < 0.06:
                checkpoint(local)
            elif wishes:
                change(local, "count", "scale", order.randint(1, 4))
        elif now < 0.11 and local.driver.checkpoints.current is not None:
            local.driver.checkpoints.abandon()
            done.counts["given up"] += 1
        if kills and local.driver.restores.in_vain < 3 and local.driver.phase == "running" and order.random() < 0.01:
            alive = [i for unit in local.driver.units.values() for i in unit.subs if local.lives(i)]
            if alive:
                local.kill(order.choice(alive))
                kills -= 1
        if not local.step():
            local.wait()
    assert local.driver.failure is None, local.driver.failure
    done.of(local, "checkpoint", "death", "given up", *(["rescale"] if wishes else []))


class Slowly(Spout):
    """Some words of sixteen, as time goes by: a tick comes between them."""

    def __init__(self, n):
        self.next, self.n = 0, n

    def open(self, context):
        self.context = context
        self.begun = None

    def read(self, limit):
        if self.next >= self.n:
            raise EndOfStream
        if self.begun is None:
            self.begun, self.first = self.context.now(), self.next
        end = min(self.n, self.first + int((self.context.now() - self.begun) * 1000), self.next + limit)
        rows = [("abcdefghijklmnop"[i % 16], 1) for i in range(self.next, end)]
        self.next = end
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


def plan_of(bolt, n=ROWS, **options):
    def plan():
        t = Topology("slowly")
        slowly = t.spout("slowly", Slowly(n))
        slowly.bolt("count", bolt, grouping=by_key(), parallelism=2, **options).sink("table", Landed())
        return t.plan()

    return plan


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(0, 4))
@example(seed=4, kills=4)
@example(seed=0, kills=4)
def test_what_a_tick_puts_out_and_what_it_changes_are_kept_together(done, seed, kills):
    local = LocalRuntime(plan_of(Tally, tick_every=0.05), seed=seed, settings=EXACTLY)
    shaken(done, local, seed, kills)
    landed = Counter()
    for row in local.landed("table"):
        landed[row.key] += row.value
    assert landed == Counter("abcdefghijklmnop"[i % 16] for i in range(ROWS))


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(0, 4))
@example(seed=4, kills=4)
@example(seed=0, kills=4)
def test_what_has_expired_does_not_come_back(done, seed, kills):
    local = LocalRuntime(plan_of(AtTheEnd, expire_after=0.03), seed=seed, settings=EXACTLY)
    shaken(done, local, seed, kills)
    landed = Counter()
    for row in local.landed("table"):
        landed[row.key] += row.value
    assert landed == Counter("abcdefghijklmnop"[i % 16] for i in range(ROWS))


class Many(BatchBolt):
    """Counts by key; the engine does not see which of its keys a batch changes."""

    def process_batch(self, rows):
        out = []
        for key, value in rows:
            self.keyed[key] = self.keyed.get(key, 0) + value
            out.append((key, self.keyed[key]))
        self.emit_batch(out)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(0, 4))
@example(seed=4, kills=4)
@example(seed=193, kills=3)
def test_a_batch_bolt_counts_each_tuple_once(done, seed, kills):
    local = LocalRuntime(plan_of(Many), seed=seed, settings=EXACTLY)
    shaken(done, local, seed, kills)
    found = {}
    for row in local.landed("table"):
        found.setdefault(row.key, []).append(row.value)
    want = Counter("abcdefghijklmnop"[i % 16] for i in range(ROWS))
    assert {key: sorted(values) for key, values in found.items()} == {
        key: list(range(1, n + 1)) for key, n in want.items()
    }


class ManyColumns(BatchBolt):
    """The same on columns: each kind of array in, another out."""

    def process_columns(self, keys, values):
        totals = []
        names, numbers = (list(plain(column)) for column in (keys, values))
        for key, value in zip(names, numbers):
            self.keyed[key] = self.keyed.get(key, 0) + value
            totals.append(self.keyed[key])
        self.emit_columns(pa.array(names), np.array(totals))


class SlowlyArrays(Slowly):
    """The same words as arrays: NumPy's and Arrow's in turn."""

    def read(self, limit):
        rows = super().read(limit)
        of = np.array if self.next % 2 else pa.array
        return Columns(*map(of, zip(*rows))) if rows else []


@settings(max_examples=8 if depth.PROFILE == "deep" else 1, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(0, 4))
@example(seed=4, kills=4)
@example(seed=193, kills=3)
def test_arrays_are_counted_once_whoever_dies_and_whatever_changes(done, seed, kills):
    def plan():
        t = Topology("arrays")
        words = t.spout("slowly", SlowlyArrays(ROWS))
        counts = words.bolt("count", ManyColumns, grouping=by_key(), parallelism=2)
        counts.bolt("after", Many, grouping=by_key(), parallelism=2).sink("sums", Landed())
        counts.sink("table", Landed())
        return t.plan()

    local = LocalRuntime(plan, seed=seed, settings=EXACTLY)
    shaken(done, local, seed, kills)
    found = {}
    for row in local.landed("table"):
        found.setdefault(row.key, []).append(row.value)
    want = Counter("abcdefghijklmnop"[i % 16] for i in range(ROWS))
    assert {key: sorted(values) for key, values in found.items()} == {
        key: list(range(1, n + 1)) for key, n in want.items()
    }
    assert Counter(row.key for row in local.landed("sums")) == want
    assert {type(row.value) for row in local.landed("sums")} == {int}


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(0, 3))
@example(seed=3, kills=3)
@example(seed=0, kills=3)
def test_a_spout_that_has_ended_does_not_stop_checkpoints(done, seed, kills):
    def plan():
        t = Topology("two")
        short, long = t.spout("short", Slowly(32)), t.spout("long", Slowly(ROWS))
        t.bolt("count", Count, inputs={short: by_key(), long: by_key()}, parallelism=2).sink("table", Landed())
        return t.plan()

    local = LocalRuntime(plan, seed=seed, settings=EXACTLY)
    shaken(done, local, seed, kills)
    want = Counter("abcdefghijklmnop"[i % 16] for n in (32, ROWS) for i in range(n))
    assert Counter(row.key for row in local.landed("table")) == want
    assert {row.key: row.value for row in sorted(local.landed("table"), key=lambda row: row.value)} == want
    ended = [kept for kept in local.kept if kept.units["short"].finished and not kept.units["long"].finished]
    assert ended
    assert all(kept.units["short"].positions for kept in ended)


def test_a_batch_bolt_behind_partial_key_is_refused():
    t = Topology("halves")
    t.spout("lines", Nothing()).bolt("count", Many, grouping=partial_key(), parallelism=2)
    with pytest.raises(UsageError, match="'count' is a BatchBolt behind partial_key.*by_key"):
        LocalRuntime(t, settings=EXACTLY)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(0, 4))
@example(seed=193, kills=3)
@example(seed=0, kills=4)
def test_a_checkpoint_that_was_given_up_leaves_no_hole_in_the_next_ones(done, seed, kills):
    local = LocalRuntime(plan_of(Count), seed=seed, settings=EXACTLY)
    shaken(done, local, seed, kills, wishes=False)
    found = {}
    for row in local.landed("table"):
        found.setdefault(row.key, []).append(row.value)
    want = Counter("abcdefghijklmnop"[i % 16] for i in range(ROWS))
    assert {key: sorted(values) for key, values in found.items()} == {
        key: list(range(1, n + 1)) for key, n in want.items()
    }
    if local.kept:
        assert states(local, "count", local.kept[-1].number) == want


@pytest.mark.parametrize("seed", range(0, 20, 1 if depth.PROFILE == "deep" else 4))
@pytest.mark.parametrize("end", ["fails", "is stopped at once"])
def test_a_run_that_ends_in_the_middle_of_a_checkpoint_keeps_no_half_of_one(seed, end):
    rows = text(LINES)
    local = LocalRuntime(words(), spouts={"lines": rows}, seed=seed, settings=EXACTLY)
    while len(local.emitted("count")) < 500:
        local.step()
    local.checkpoint()
    for _ in range(seed):
        local.step()
    before = len(local.kept)
    if end == "fails":
        local.driver.fail("a test says so", local.now())
    else:
        local.driver.stop_at_once(local.now())
    while local.driver.phase != "ended":
        if not local.step():
            local.wait()
    assert len(local.kept) == before
    for kept in local.kept:
        assert sum(states(local, "count", kept.number).values()) > 0
        assert len(kept.units["count"].chains) == 2


class FullVault(MemoryStateStore):
    """Has no room for a while."""

    full = True

    def create(self, number, incarnation, base):
        if self.full:
            raise CheckpointError("the state cannot be written to /state: No space left on device; free space")
        return super().create(number, incarnation, base)


def test_where_state_cannot_be_written_the_run_goes_on_and_a_later_checkpoint_holds():
    rows = text(LINES)
    local = LocalRuntime(words(), spouts={"lines": rows}, settings=EXACTLY)
    local.state_store = state_store = FullVault()
    while len(local.emitted("count")) < 500:
        local.step()
    local.checkpoint()
    while local.driver.checkpoints.current is not None:
        local.step()
    assert not local.kept
    assert any("no checkpoint: the state cannot be written to /state: No space left" in n for n in local.driver.notices)
    state_store.full = False
    local.checkpoint()
    until_kept(local)
    local.kill(local.sub_units("count")[0])
    local.run_until_drained()
    check(local, rows)


def test_a_last_checkpoint_that_cannot_be_written_ends_the_run_with_the_reason():
    local = LocalRuntime(words(), spouts={"lines": text(20)}, settings=EXACTLY)
    local.state_store = FullVault()
    with pytest.raises(TopologyFailed, match="the last checkpoint could not be taken: .*No space left"):
        local.run_until_drained()
    assert not local.landed("table")


@pytest.mark.parametrize("seed", depth.seeds(24))
def test_a_lost_frame_takes_all_back(seed):
    rows = text(LINES)
    local = LocalRuntime(words(), spouts={"lines": rows}, seed=seed, settings=EXACTLY)
    while len(local.emitted("count")) < 500:
        local.step()
    local.checkpoint()
    until_kept(local)
    lost = False
    while not lost and local.driver.phase == "running":
        local.step()
        lost = any(local.lose_frame(i) for i in local.sub_units("count"))
    assert lost
    local.run_until_drained()
    assert local.driver.restores.all
    check(local, rows)


def test_every_test_that_the_page_names_is_there():
    root = Path(__file__).parents[3]
    named = set(re.findall(r"`(test_\w+)`", (root / "docs" / "explanation" / "guarantees.md").read_text()))
    defined = {
        name for path in (root / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert named
    assert named <= defined
