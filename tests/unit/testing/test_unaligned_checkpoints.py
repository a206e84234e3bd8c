"""Checkpoints that hold what waits in inboxes, on LocalRuntime: slow bolts get theirs, and each tuple counts once."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from counting import text, totals, words
from test_checkpoints import CODEC, read, states, walk
from test_overload_with_checkpoints import Flood

from esault import Bolt, Topology, broadcast, by_key, shuffle, single
from esault.flow.worker.async_processing import AsyncProcessing
from esault.flow.worker.phase import Phase
from esault.messages.settings import Settings
from esault.state.state_dir import StateDir
from esault.testing import LocalRuntime, ManualClock

LINES = 300
ALWAYS = Settings(delivery="eo", max_pending=4, root_rows=16, aligned_checkpoint_timeout=0.0)


class Passes(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def slow(clock, seconds, grouping=None, **options):
    """A bolt that takes so long for each tuple, behind a spout that always has more."""

    class Slow(Bolt):
        total = 0

        def process(self, key, value):
            clock.advance(seconds)
            self.total += value
            self.emit(key, self.total)

    t = Topology("slow")
    t.spout("load", Flood()).bolt("count", Slow, grouping=grouping or by_key(), **options)
    return t


def in_flight(local, unit, kept):
    """Rows in flight of this unit, in a checkpoint."""
    rows = []
    for piece in kept.units[unit].in_flight:
        for _, packed in local.state_store.read(piece):
            _, keys, values, _ = CODEC.unpack(packed)
            rows += zip(keys, values)
    return rows


@pytest.mark.parametrize("grouping", [by_key(), shuffle(), single()], ids=repr)
def test_a_bolt_of_a_second_a_tuple_gets_its_checkpoints_within_seconds(grouping):
    clock = ManualClock()
    settings = Settings(delivery="eo", checkpoint_every=2.0, status_every=30.0)
    local = LocalRuntime(slow(clock, 1.0, grouping), settings=settings, clock=clock, policies={"": "none"})
    local.run_for(60.0)
    assert len(local.kept) >= 8
    assert max(kept.completed_at - kept.begun_at for kept in local.kept) <= 8.0
    assert sum(len(in_flight(local, "count", kept)) > 100 for kept in local.kept) == len(local.kept)
    assert not [text for text in local.driver.notices if "no checkpoint" in text]


def test_its_run_pauses_in_seconds_and_another_goes_on_with_what_waited():
    clock = ManualClock()
    settings = Settings(delivery="eo", checkpoint_every=5.0, status_every=30.0)
    local = LocalRuntime(slow(clock, 1.0), settings=settings, clock=clock, policies={"": "none"})
    local.run_for(20.0)
    begun = local.clock()
    local.drain()
    while local.driver.phase != "ended":
        if not local.step():
            local.wait()
    assert local.driver.paused
    assert local.clock() - begun < 30.0
    kept = local.driver.completed
    waiting = in_flight(local, "count", kept)
    assert len(waiting) > 100
    later = LocalRuntime(slow(clock, 0.0), settings=settings, clock=clock, kept=kept, policies={"": "none"})
    later.state_store = local.state_store
    seen = len(later.emitted("count"))
    while len(later.emitted("count")) < seen + len(waiting):
        if not later.step():
            later.wait()
    # What waited comes first, in its order, and goes on from the totals that there were.
    assert [key for key, _ in later.emitted("count")][: len(waiting)] == [key for key, _ in waiting]
    so_far = Counter(key for key, _ in local.emitted("count"))
    processed = Counter(dict.fromkeys(so_far, 0))
    processed.update(dict.fromkeys(so_far, 0))
    for key, total in later.emitted("count")[: len(waiting)]:
        processed[key] += 1
        assert total <= so_far[key] + processed[key]


def test_a_unit_whose_rows_have_no_other_place_stays_aligned():
    clock = ManualClock()
    settings = Settings(delivery="eo", checkpoint_every=2.0, max_pending=1, root_rows=4)
    local = LocalRuntime(slow(clock, 0.1, broadcast()), settings=settings, clock=clock, policies={"": "none"})
    local.run_for(60.0)
    assert local.kept
    assert not any(kept.units["count"].in_flight for kept in local.kept)


def test_a_unit_that_stays_aligned_waits_for_its_mark_without_turns():
    """Its time to be unaligned has passed, and that is nothing to wake for: it took all of a processor until the mark came."""
    clock = ManualClock()
    settings = Settings(delivery="eo", max_pending=1, root_rows=4, aligned_checkpoint_timeout=0.0)

    class Waits(Bolt):
        async def process(self, key, value):
            await asyncio.sleep(5.0)
            self.emit(key, value)

    t = Topology("waits")
    t.spout("load", Flood()).bolt("ask", Waits, shuffle()).bolt("all", Passes, broadcast(), parallelism=2)
    local = LocalRuntime(t, settings=settings, clock=clock, policies={"": "none"})
    while local.driver.phase != "running":
        local.step() or local.wait()
    local.checkpoint()
    local.run_for(1.0)
    steps = 0
    while not local.kept:
        steps += 1
        local.step() or local.wait()
    assert steps < 3000


def test_rows_that_were_carried_to_a_unit_that_ends_are_processed_before_its_cut():
    """An async unit begins no call where a cut is to be made; but one that is being finished is cut behind its end."""
    bolt = SimpleNamespace(
        reader=SimpleNamespace(unaligned=True, cut_is_complete=True), lifecycle=SimpleNamespace(phase=Phase.RUNNING)
    )
    unit = SimpleNamespace(_bolt=bolt)
    pausing = vars(AsyncProcessing)["_pausing"].fget
    assert pausing(unit)
    bolt.lifecycle.phase = Phase.FINISHING
    assert not pausing(unit)


def test_a_limit_that_is_a_setting_gives_a_checkpoint_up():
    clock = ManualClock()
    settings = Settings(
        delivery="eo", checkpoint_every=2.0, checkpoint_timeout=3.0, aligned_checkpoint_timeout=float("inf")
    )
    local = LocalRuntime(slow(clock, 1.0), settings=settings, clock=clock, policies={"": "none"})
    local.run_for(30.0)
    assert not local.kept
    assert any("did not do its part within 3 s" in text for text in local.driver.notices)


def test_state_and_rows_in_flight_together_are_the_rows_before_the_cut():
    rows, held = text(LINES), 0
    for seed in range(12):
        local = LocalRuntime(words(), spouts={"lines": rows}, seed=seed, settings=ALWAYS)
        walk(local, random.Random(seed))
        for kept in local.kept:
            waiting = in_flight(local, "split", kept), in_flight(local, "count", kept)
            found = Counter(states(local, "count", kept.number))
            found += totals(waiting[0])
            found += Counter(word for word, _ in waiting[1])
            assert found == totals(rows[: read(kept)]), (seed, kept.number)
            held += sum(map(len, waiting))
    assert held > 1000


@pytest.mark.parametrize("ackers", [0, 2])
def test_whoever_dies_each_word_counts_once(ackers):
    rows, restored = text(LINES), 0
    want = totals(rows)
    options = replace(ALWAYS, ackers=ackers, reload_state=True)
    for seed in range(10):
        local = LocalRuntime(words(), spouts={"lines": rows}, seed=seed, settings=options)
        walk(local, random.Random(seed), kills=3, kill_rate=0.05)
        landed = [(row.key, row.value) for row in local.landed("table")]
        assert len(landed) == len(set(landed)) == want.total(), seed
        assert Counter(word for word, _ in landed) == want, seed
        kept = {kept.number: kept for kept in local.kept}
        for back in local.report().restores:
            if back.checkpoint:
                restored += sum(len(in_flight(local, unit, kept[back.checkpoint])) for unit in ("split", "count"))
    assert restored > 100  # else this shows nothing


def test_rows_in_flight_outlive_all_processes_in_files(tmp_path):
    clock = ManualClock()
    settings = Settings(delivery="eo", checkpoint_every=2.0, status_every=30.0)
    local = LocalRuntime(slow(clock, 1.0), settings=settings, clock=clock, state_dir=tmp_path, policies={"": "none"})
    local.run_for(30.0)
    StateDir(tmp_path, locked=False).keep(local.driver.completed)
    kept, amiss = StateDir(tmp_path, locked=False).newest()
    assert not amiss
    assert kept == local.driver.completed
    waiting = in_flight(local, "count", kept)
    assert len(waiting) > 100
    later = LocalRuntime(
        slow(clock, 0.0, parallelism=3),
        clock=clock,
        settings=settings,
        state_dir=tmp_path,
        kept=kept,
        policies={"": "none"},
    )
    while len(later.emitted("count")) < 2 * len(waiting):
        if not later.step():
            later.wait()
    for key, n in Counter(key for key, _ in waiting).items():
        assert sum(k == key for k, _ in later.emitted("count")) >= n
