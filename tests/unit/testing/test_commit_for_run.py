"""A sink that commits for the whole run: one call a checkpoint, with the handles of all sub-units, whatever happens."""

from __future__ import annotations

import pytest

from esault import Bolt, Sink, Topology, by_key
from esault.control.run.run_checkpoints import check_sinks
from esault.errors import TopologyFailed, UsageError
from esault.messages.settings import Settings
from esault.sources import Items
from esault.testing import LocalRuntime, ManualClock

ROWS = [(i % 7, i) for i in range(400)]


class Store:
    """What outlives processes: parts that are staged, the versions, and each call."""

    def __init__(self):
        self.parts, self.versions, self.calls, self.failures = {}, {}, [], []

    @property
    def shown(self):
        return sorted(v for handles in self.versions.values() for handle in handles for v in self.parts[handle])


class Table(Sink):
    def __init__(self, store):
        self.store, self.rows = store, []

    def write(self, rows):
        self.rows += [row.value for row in rows]

    def prepare(self, epoch):
        handle = f"part-{len(self.store.parts)}"
        self.store.parts[handle], self.rows = self.rows, []
        return handle

    def commit_all(self, epoch, handles):
        self.store.calls.append((epoch, handles))
        if self.store.failures:
            raise self.store.failures.pop()
        assert self.store.versions.setdefault(epoch, handles) == handles, "the same handles come again"


class Both(Table):
    def commit(self, epoch, handle):
        self.store.versions[handle] = [handle]


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def plan(store, sink=Table):
    t = Topology("one")
    t.spout("items", Items(ROWS)).bolt("same", Same, by_key(), parallelism=3).sink("out", sink(store))
    return t.plan()


def run(store, seed=0, sink=Table, **options):
    settings = Settings(
        delivery=options.pop("delivery", "eo"),
        root_rows=4,
        max_pending=4,
        restart_strategy=options.pop("strategy", ""),
    )
    clock = ManualClock()
    return LocalRuntime(lambda: plan(store, sink), real=True, clock=clock, seed=seed, settings=settings, **options)


def checkpoint(local):
    before = local.driver.checkpoints.newest
    local.run_until(lambda: local.driver.may_checkpoint)
    local.checkpoint()
    local.run_until(lambda: local.driver.checkpoints.newest > before and not local.driver.checkpoints.held)


def test_it_is_called_once_for_each_checkpoint_with_the_handles_of_all_sub_units():
    store = Store()
    local = run(store)
    checkpoint(local)
    checkpoint(local)
    local.run_until_drained()
    assert [epoch for epoch, _ in store.calls] == [1, 2, 3]
    assert all(len(set(handles)) == 3 for _, handles in store.calls)
    assert store.shown == sorted(value for _, value in ROWS)


def test_what_was_prepared_for_a_checkpoint_that_was_given_up_goes_with_the_next_one_as_one():
    store = Store()
    local = run(store)
    local.run_until(lambda: local.driver.may_checkpoint)
    local.checkpoint()
    local.run_until(lambda: store.parts)
    local.driver.checkpoints.abandon()
    checkpoint(local)
    local.run_until_drained()
    assert [epoch for epoch, _ in store.calls] == [2, 3]
    assert store.shown == sorted(value for _, value in ROWS)


def test_no_checkpoint_begins_before_it_has_committed_nor_does_the_run_end():
    store, seen = Store(), []
    local = run(store)
    commit = local._sinks.commit_for_run

    def committing(driver, now):
        driver.deliver(now)
        seen.append((driver.phase, driver.may_checkpoint, driver.checkpoints.wanted(1e12)))
        commit(driver, now)

    local._sinks.commit_for_run = committing
    checkpoint(local)
    local.run_until_drained()
    assert seen == [("running", False, False), ("stopping", False, False)]
    assert store.shown == sorted(value for _, value in ROWS)


def test_an_error_ends_the_run_and_the_next_one_commits_what_belongs_to_the_checkpoint(tmp_path):
    store = Store()
    store.failures = [ValueError("no")]
    local = run(store, state_dir=tmp_path)
    with pytest.raises(TopologyFailed, match="sink 'out', commit_all: ValueError: no"):
        checkpoint(local)
    assert store.shown == []
    completed = local.driver.completed
    local = run(store, state_dir=tmp_path, kept=completed, last_number=completed.number)
    local.run_until_drained()
    assert store.calls[0] == store.calls[1], "the same epoch and handles"
    assert store.shown == sorted(value for _, value in ROWS)


def test_an_error_that_may_pass_has_all_go_back_and_it_is_tried_again():
    store = Store()
    store.failures = [TimeoutError("away")]
    local = run(store, strategy="fixed-delay")
    checkpoint(local)
    local.run_until_drained()
    assert len(local.driver.restores.all) == 1
    assert store.calls[0] == store.calls[1]


def test_without_checkpoints_one_that_has_no_commit_is_refused():
    with pytest.raises(UsageError, match="sink 'out': Table commits once for each checkpoint.*--checkpoint"):
        check_sinks(plan(None), Settings())
    check_sinks(plan(None, Both), Settings())
    store = Store()
    run(store, sink=Both, delivery="alo").run_until_drained()
    assert store.calls == []
    assert store.shown == sorted(value for _, value in ROWS)


def test_rows_are_collected_as_with_any_sink():
    local = LocalRuntime(plan(Store()), settings=Settings(delivery="eo", root_rows=4))
    checkpoint(local)
    local.run_until_drained()
    assert sorted(row.value for row in local.landed("out")) == sorted(value for _, value in ROWS)
