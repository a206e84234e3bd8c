"""Sources of splits on LocalRuntime: each row is read once, whoever reads its split."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from commands_asked import change, checkpoint
from counting import Landed
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numbered import Numbered, Shelf

from esault import Bolt, Topology, by_key
from esault.messages.settings import Settings
from esault.testing import LocalRuntime


class Last(Bolt):
    """Counts the rows of each split, and says which came out of order."""

    def __init__(self):
        self.next = 0

    def process(self, key, value):
        self.emit(key, (value, value == self.next))
        self.next = value + 1


def numbers(source, parallelism=2):
    t = Topology("numbers")
    rows = t.spout("numbers", source, parallelism=parallelism)
    rows.bolt("last", Last, grouping=by_key(), parallelism=2).sink("table", Landed())
    return t


def walked(local, shelf, order, kills, exactly, most_seconds=200.0):
    """Run to the end; the spout and the bolt are scaled, processes die, checkpoints are taken."""
    start = local.clock()
    shelf.alive = local.lives
    while local.driver.phase != "ended":
        if local.driver.phase == "running" and order.random() < 0.15:
            if exactly and order.random() < 0.5:
                checkpoint(local)
            else:
                unit = order.choice(["numbers", "numbers", "last"])
                change(local, unit, "scale", order.randint(1, 4))
        if kills and local.driver.phase == "running" and order.random() < 0.01:
            subs = [i for each in local.driver.units.values() for i in each.subs if local.lives(i)]
            if subs and local.driver.restores.in_vain < 3:
                local.kill(order.choice(subs))
                kills -= 1
        if not local.step():
            local.wait()
        assert local.clock() - start < most_seconds, "stuck"
    assert local.driver.failure is None, local.driver.failure


def run(seed, delivery, kills, at_once=None, splits=7):
    order = random.Random(seed)
    shelf = Shelf({f"p{i}": order.randint(0, 300) for i in range(splits)})
    options = Settings(delivery=delivery, max_pending=4, root_rows=16)
    local = LocalRuntime(numbers(Numbered(shelf, at_once=at_once)), seed=seed, settings=options)
    walked(local, shelf, order, kills, delivery == "eo")
    return local, shelf


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from([None, 2]))
@example(seed=1, at_once=None)
def test_with_checkpoints_each_row_of_each_split_is_processed_once_and_in_order(done, seed, at_once):
    local, shelf = run(seed, "eo", kills=3, at_once=at_once)
    done.of(local, "rescale", "checkpoint", "death")
    landed = [(row.key, row.value[0]) for row in local.landed("table")]
    assert Counter(landed) == Counter((name, i) for name, size in shelf.sizes.items() for i in range(size))
    assert all(row.value[1] for row in local.landed("table"))
    ids = [row.id for row in local.landed("table")]
    assert len(set(ids)) == len(ids)
    assert {name: shelf.committed.get(name, 0) for name in shelf.sizes} == shelf.sizes


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from([None, 2]))
@example(seed=1, at_once=None)
def test_without_checkpoints_no_row_is_missing_and_a_row_that_comes_twice_has_its_id(done, seed, at_once):
    local, shelf = run(seed, "alo", kills=2, at_once=at_once)
    done.of(local, "rescale", "death")
    wanted = {(name, i) for name, size in shelf.sizes.items() for i in range(size)}
    landed = {}
    for row in local.landed("table"):
        landed.setdefault((row.key, row.value[0]), set()).add(row.id)
    assert set(landed) == wanted
    assert all(len(ids) == 1 for ids in landed.values())


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from(["alo", "none"]))
def test_a_change_alone_repeats_nothing_and_keeps_the_order_of_each_split(done, seed, delivery):
    local, shelf = run(seed, delivery, kills=0)
    done.of(local, "rescale")
    landed = [(row.key, row.value[0]) for row in local.landed("table")]
    assert sorted(landed) == sorted((name, i) for name, size in shelf.sizes.items() for i in range(size))
    assert delivery == "none" or all(row.value[1] for row in local.landed("table"))
