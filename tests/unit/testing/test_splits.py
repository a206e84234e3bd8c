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

from esault import Bolt, Topology, TopologyFailed, by_key
from esault.messages.settings import Settings
from esault.sources import CsvFiles, Directory, Items
from esault.testing import LocalRuntime, Sent
from esault.windows import TumblingWindow


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
@example(seed=470182, at_once=None)  # the reader of the last split leaves as it ends
def test_with_checkpoints_each_row_of_each_split_is_processed_once_and_in_order(done, seed, at_once):
    local, shelf = run(seed, "eo", kills=3, at_once=at_once)
    done.of(local, "rescale", "checkpoint", "death")
    landed = [(row.key, row.value[0]) for row in local.landed("table")]
    assert Counter(landed) == Counter((name, i) for name, size in shelf.sizes.items() for i in range(size))
    assert all(row.value[1] for row in local.landed("table"))
    ids = [row.id for row in local.landed("table")]
    assert len(set(ids)) == len(ids)
    # Else a run that goes back or goes on would read them again.
    assert all(place.ended for place in local.driver.completed.units["numbers"].splits.values())
    told = {name: shelf.committed.get(name, 0) for name in shelf.sizes}
    # The one that was killed behind a checkpoint may not have told; a split that has ended is not opened again for it.
    assert told == shelf.sizes or (
        local.driver.deaths and all(told[name] <= size for name, size in shelf.sizes.items())
    )


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
@example(seed=8, delivery="alo")  # a reader leaves, and waits for what new sub-units of the bolt have to ack
def test_a_change_alone_repeats_nothing_and_keeps_the_order_of_each_split(done, seed, delivery):
    local, shelf = run(seed, delivery, kills=0)
    done.of(local, "rescale")
    landed = [(row.key, row.value[0]) for row in local.landed("table")]
    assert sorted(landed) == sorted((name, i) for name, size in shelf.sizes.items() for i in range(size))
    assert delivery == "none" or all(row.value[1] for row in local.landed("table"))


class Sum(Bolt):
    def __init__(self):
        self.rows = 0

    def process(self, key, value):
        self.rows += 1

    def finish(self):
        self.emit(self.window.start, self.rows)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from([("eo", 2), ("alo", 0)]))
def test_splits_that_come_unevenly_far_make_nothing_late_wherever_they_are_read(done, seed, how):
    delivery, kills = how
    order = random.Random(seed)
    shelf = Shelf({f"p{i}": order.randint(50, 400) for i in range(6)})
    t = Topology("numbers")
    rows = t.spout("numbers", Numbered(shelf), parallelism=3, time=float)
    sums = rows.window("last", Sum, TumblingWindow(20), grouping=by_key(), parallelism=2)
    sums.sink("table", Landed())
    sums["late"].sink("late", Landed())
    options = Settings(delivery=delivery, max_pending=4, root_rows=16)
    local = LocalRuntime(t, seed=seed, settings=options)
    walked(local, shelf, order, kills, delivery == "eo")
    done.of(local, "rescale")
    assert not local.landed("late")
    wanted = Counter(20.0 * (i // 20) for size in shelf.sizes.values() for i in range(size))
    found = Counter()
    for row in local.landed("table"):
        found[row.key] += row.value
    assert found == wanted


def newest(shelf, **options):
    local = LocalRuntime(numbers(Numbered(shelf, every=1.0, latest=True)), **options)
    shelf.alive = local.lives
    return local


def landed_of(local):
    return sorted((row.key, row.value[0]) for row in local.landed("table"))


@pytest.mark.parametrize("delivery", ["alo", "eo"])
def test_a_source_that_begins_at_the_newest_row_reads_a_split_that_is_added_from_its_first(delivery):
    shelf = Shelf({"p0": 5, "p1": 7})
    local = newest(shelf, settings=Settings(delivery=delivery))
    local.run_for(1.0)
    shelf.sizes["p0"] += 1
    shelf.sizes["p2"] = 3
    local.run_for(3.0)
    if delivery == "eo":
        checkpoint(local)
        local.run_for(1.0)
    assert landed_of(local) == [("p0", 5), ("p2", 0), ("p2", 1), ("p2", 2)]


def test_a_split_that_came_while_no_run_was_there_is_read_from_its_first_row():
    shelf = Shelf({"p0": 5})
    first = newest(shelf, settings=Settings(delivery="eo"))
    first.run_for(1.0)
    checkpoint(first)
    first.run_for(1.0)
    shelf.sizes.update({"p0": 6, "p1": 2})
    shelf.readers.clear()
    kept, number = first.driver.completed, first.driver.checkpoints.newest
    second = newest(shelf, settings=Settings(delivery="eo"), kept=kept, last_number=number)
    second.state_store = first.state_store
    second.run_for(2.0)
    checkpoint(second)
    second.run_for(1.0)
    assert landed_of(second) == [("p0", 5), ("p1", 0), ("p1", 1)]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (lambda folder: CsvFiles(folder / "prices.csv"), "prices.csv: there is no such file"),
        (lambda folder: Directory(folder / "inbox", every=None), "inbox: there is no such"),
        (lambda folder: Directory(folder / "inbox"), "inbox"),
    ],
)
def test_files_that_the_host_of_their_reader_does_not_see_end_the_run(tmp_path, source, said):
    """The command looks on its own machine, and a path may name something else on another, such as beside the topology's file."""
    t = Topology("prices")
    t.spout("prices", source(tmp_path)).sink("table", Landed())
    local = LocalRuntime(t)
    with pytest.raises(TopologyFailed, match=f"unit 'prices': .*{said}"):
        local.run_for(60)


def test_files_that_were_taken_away_once_they_were_read_end_no_run_that_goes_back(tmp_path):
    file = tmp_path / "prices.csv"
    file.write_text("sku,cents\na,1\nb,2\n")
    t = Topology("prices")
    read = t.spout("prices", CsvFiles(file, key="sku"))
    read.union(t.spout("others", Items([]))).sink("table", Landed())
    local = LocalRuntime(t, settings=Settings(delivery="eo", checkpoint_every=0.1), spouts={"others": Sent()})
    local.run_for(1)
    file.unlink()
    local.kill(local.sub_units("prices")[0])
    local.run_for(1)
    local.run_until_drained()
    assert [back.checkpoint > 0 for back in local.report().restores] == [True]
    assert sorted(row.key for row in local.landed("table")) == ["a", "b"]
