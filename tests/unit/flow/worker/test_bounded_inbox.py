"""A bounded inbox drops what comes when it is full, says how much, and owes nobody anything for it."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import depth
import pytest
from commands_asked import change, some_change
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from esault import BatchBolt, Bolt, EndOfStream, Spout, Topology, broadcast, by_key, shuffle, single
from esault.flow.channel.frame import Batch
from esault.flow.delivery.acks import Acks
from esault.flow.delivery.ledger import DONE, PROCESSED, Ledger
from esault.flow.worker.bounded_inbox import BoundedInbox
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.testing import LocalRuntime

ROOT = (1, 0, 0)


def batch(rows, id=0, ids=False):
    keys = tuple(range(rows))
    return Batch(ROOT, id, 0, keys, tuple(k * 10 for k in keys), 0.0, tuple(map(str, keys)) if ids else None)


# the plain core -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting", "comes", "kept"),
    [
        (0, [100], [100]),
        (70, [100], [30]),  # in part
        (100, [100], []),
        (130, [100], []),  # more was handed over than fits
        (0, [60, 60, 60], [60, 40]),
        (99, [1, 1], [1]),
    ],
)
def test_what_fits_is_kept_and_the_rest_counted(waiting, comes, kept):
    bound = BoundedInbox(100, lambda: waiting, lambda: 0, None)
    found = bound.fitting(0.0, [batch(n) for n in comes])
    assert [len(b.keys) for b in found] == kept
    assert bound.dropped == sum(comes) - sum(kept)


def test_the_first_rows_of_a_batch_are_kept_with_their_values_and_ids():
    bound = BoundedInbox(100, lambda: 97, lambda: 0, None)
    (found,) = bound.fitting(0.0, [batch(5, ids=True)])
    assert (found.keys, found.values, found.ids) == ((0, 1, 2), (0, 10, 20), ("0", "1", "2"))


def test_arrays_are_divided_as_rows_are():
    np = pytest.importorskip("numpy")
    bound = BoundedInbox(10, lambda: 7, lambda: 0, None)
    (found,) = bound.fitting(0.0, [batch(5)._replace(keys=np.arange(5), values=np.arange(5) * 2.0)])
    assert found.keys.tolist() == [0, 1, 2]
    assert found.values.tolist() == [0.0, 2.0, 4.0]
    assert bound.dropped == 2


@given(
    st.integers(1, 50),
    st.lists(st.tuples(st.lists(st.integers(1, 40), max_size=4), st.integers(0, 30)), min_size=1, max_size=30),
    st.integers(0, 1 << 30),
)
def test_whatever_comes_the_bound_holds_the_counts_agree_and_every_root_ends_once_and_for_all(most, frames, seed):
    order = random.Random(seed)
    ledger, marks = Ledger(), []
    acks = Acks(1, 1, None, None, lambda root, p, d: marks.append(ledger.ack(root, p, d, 0.0)))
    acks.set_ackers({}, ())
    inbox = []
    bound = BoundedInbox(most, lambda: sum(len(b.keys) for b in inbox), lambda: order.getrandbits(64) or 1, acks)
    arrived = processed = 0
    opened = 0
    for comes, work in frames:
        batches = []
        for rows in comes:
            one = batch(rows, id=order.getrandbits(64) or 1)
            opened ^= one.id
            arrived += rows
            batches.append(one)
        inbox += bound.fitting(0.0, batches)
        assert sum(len(b.keys) for b in inbox) <= most
        while inbox and work > 0:
            one = inbox.pop(0)
            work -= len(one.keys)
            processed += len(one.keys)
            acks.add(one.root, one.id, one.id)
        assert arrived == processed + bound.dropped + sum(len(b.keys) for b in inbox)
    if not opened:
        return
    first = ledger.register(ROOT, opened, opened, 0.0)
    acks.send()
    done = first | (marks[-1] if marks else 0)
    assert bool(done & PROCESSED and done & DONE) == (not inbox)  # not before all that was kept is processed
    for one in inbox:
        acks.add(one.root, one.id, one.id)
    acks.send()
    assert not inbox or marks[-1] == PROCESSED | DONE


# in a run -------------------------------------------------------------------------------------------


class Flood(Spout):
    """So many numbered tuples a second of the run's time, twenty at a time; then the end."""

    def __init__(self, rate, seconds, keys=20):
        self.rate, self.seconds, self.keys, self.at = rate, seconds, keys, 0
        self.begin = None

    def read(self, limit):
        now = self.context.now()
        self.begin = self.begin or now
        due = min(int((now - self.begin) * self.rate / 20) * 20, int(self.seconds * self.rate))
        rows = [(f"k{i % self.keys}", i) for i in range(self.at, min(due, self.at + limit))]
        if not rows and now >= self.begin + self.seconds:
            raise EndOfStream
        self.at += len(rows)
        return rows

    def position(self):
        return (self.at, self.begin)

    def seek(self, position):
        self.at, self.begin = position


class Echo(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += 1
        self.emit(key, (self.total, value))


class Batches(BatchBolt):
    def process_batch(self, rows):
        self.emit_batch(rows)


def flooded(bolt=Count, grouping=None, parallelism=1, buffer=100, rate=1000, seconds=3.0, **options):
    t = Topology("flooded")
    worker = t.spout("rows", Flood(rate, seconds)).bolt(
        "worker", bolt, grouping or by_key(), parallelism=parallelism, buffer=buffer, overflow="drop", **options
    )
    worker.sink("out", Collect())
    return t


def cores(local, unit="worker"):
    return [local._processes[i].core for i in local.driver.units[unit].subs if local.lives(i)]


def settled(local, lost=0):
    """Every tuple that arrived was processed, dropped, or waits."""
    worker = local.report().units["worker"]
    assert worker.arrivals == worker.tuples_in + worker.dropped + worker.backlog + lost
    return worker


#: all with all in the deep run; in others each two values of these together, and not each three
FLOODS = [
    (delivery, ackers, *worker)
    for i, delivery in enumerate(["alo", "none", "eo"])
    for j, worker in enumerate(
        [(Count, by_key(), 1), (Count, by_key(), 3), (Echo, shuffle(), 2), (Count, single(), 1), (Batches, by_key(), 2)]
    )
    for ackers in (0, 1)
    if depth.PROFILE == "deep" or (i + j) % 2 == ackers
]


@pytest.mark.slow
@pytest.mark.parametrize(("delivery", "ackers", "bolt", "grouping", "parallelism"), FLOODS)
def test_what_is_too_much_is_dropped_and_nothing_waits_for_it(delivery, ackers, bolt, grouping, parallelism):
    local = LocalRuntime(
        flooded(bolt, grouping, parallelism), settings=Settings(delivery=delivery, ackers=ackers, checkpoint_every=1.0)
    )
    local.throttle("worker", 200, 1000)
    while local.driver.phase == "running":
        if not local.step():
            local.wait()
        if all(core.ended for core in cores(local, "rows")):
            local.driver.units["worker"].unthrottle(local.clock())
        for core in cores(local):
            assert core.reader.unprocessed() <= 100
    local.run_until_drained()
    worker, report = settled(local), local.report()
    assert worker.arrivals == 3000
    assert worker.backlog == 0
    assert 1500 <= worker.dropped < 3000 - 3 * 200 * 0.8
    assert (report.roots.replayed, report.roots.open) == (0, 0)
    landed = [r.value[1] if bolt is Count else r.value for r in local.landed("out")]
    assert len(landed) == len(set(landed)) == worker.tuples_in
    # Per key in order, and what is counted are those that were processed.
    seen, last = Counter(), defaultdict(lambda: -1)
    if bolt is Count:
        for key, (total, value) in local.emitted("worker"):
            seen[key] += 1
            assert total == (seen[key] if grouping == by_key() else seen.total())
            assert value > last[key]
            last[key] = value


def test_where_there_is_room_nothing_is_dropped():
    local = LocalRuntime(flooded(buffer=5000))
    local.run_until_drained()
    worker = settled(local)
    assert (worker.tuples_in, worker.dropped) == (3000, 0)


def test_broadcast_rows_are_dropped_where_they_do_not_fit():
    local = LocalRuntime(flooded(Echo, broadcast(), 2))
    local.throttle("worker", 400, 1000)
    local.run_for(2.9)
    worker = settled(local)
    assert 180 <= worker.backlog <= 200
    assert worker.dropped > 3000
    local.drain()
    local.run_until_drained()
    worker = settled(local)
    assert worker.tuples_in == worker.arrivals - worker.dropped


@pytest.mark.slow
@pytest.mark.parametrize("buffer", depth.chosen([1, 7, 20_000], (7, 20_000)))
def test_the_window_lets_an_inbox_of_any_size_fill(buffer):
    local = LocalRuntime(flooded(buffer=buffer, rate=2_000 + buffer, seconds=3.0))
    local.throttle("worker", 1, 1000)
    local.run_for(2.9)
    worker = settled(local)
    assert worker.backlog == buffer
    assert worker.dropped > 0
    assert local.report().roots.replayed == 0
    local.stop_at_once()


@pytest.mark.slow
def test_a_unit_without_one_drops_nothing_and_its_spout_waits_although_another_has_one():
    t = Topology("two")
    t.spout("rows", Flood(5000, 2.0)).bolt("worker", Echo, by_key(), buffer=10, overflow="drop")
    t.spout("more", Flood(5000, 2.0)).bolt("other", Echo, by_key())
    local = LocalRuntime(t)
    local.throttle("worker", 10, 1000)
    local.throttle("other", 10, 1000)
    local.run_for(1.9)
    units = local.report().units
    assert units["other"].dropped == 0
    assert units["other"].arrivals <= 8 * 128 + 128
    assert units["worker"].arrivals > 5000
    local.drain()
    local.run_until_drained()


def test_the_probe_carries_the_count_and_what_is_taken_of_the_room():
    local = LocalRuntime(flooded(), policies={"worker": "none"})
    local.throttle("worker", 1, 1000)
    local.run_for(2)
    (core,) = cores(local)
    counters = core.counters()
    assert counters.dropped == core.reader.bound.dropped > 1000
    assert counters.occupancy == 1.0
    assert counters.arrivals == counters.processed + counters.dropped + counters.backlog
    assert core.status().rows.dropped == counters.dropped
    assert core.may_read
    local.stop_at_once()


def test_rows_that_are_handed_over_are_never_dropped():
    local = LocalRuntime(flooded(parallelism=2, buffer=300, seconds=2.0))
    local.throttle("worker", 1, 1000)
    local.run_for(2.5)  # all has come, and both are full
    before = settled(local)
    assert before.backlog >= 595
    owners = local.sub_units("worker")
    local.merge("worker", owners[0])
    while local.driver.units["worker"].change is not None:
        if not local.step():
            local.wait()
    local.run_for(1)
    after = settled(local)
    assert after.dropped == before.dropped
    assert after.backlog >= 590  # in one inbox now
    local.drain()
    local.run_until_drained()
    assert settled(local).tuples_in == before.arrivals - before.dropped
    assert local.report().roots.replayed == 0


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from([5, 60, 400]), st.sampled_from(["alo", "none"]))
@example(seed=1048575, buffer=60, delivery="none")
@example(seed=299864, buffer=60, delivery="none")
def test_splits_merges_and_moves_lose_nothing_beyond_what_is_counted(done, seed, buffer, delivery):
    order = random.Random(seed)
    local = LocalRuntime(
        flooded(parallelism=2, buffer=buffer, rate=1500, seconds=1.5), seed=seed, settings=Settings(delivery=delivery)
    )
    local.throttle("worker", 400, 1.2)
    start = local.clock()
    while local.driver.phase != "ended":
        if local.driver.phase == "running" and order.random() < 0.03:
            some_change(local, order, ["worker"])
        if not local.step():
            local.wait()
        assert local.clock() - start < 100, "stuck"
    assert local.driver.failure is None
    done.of(local, "split", "merge", "move", "rescale")
    worker = settled(local)
    assert worker.arrivals == 2240
    assert worker.backlog == 0
    assert local.report().roots.replayed == 0
    assert local.report().roots.open == 0
    seen, last = Counter(), defaultdict(lambda: -1)
    for key, (total, value) in local.emitted("worker"):  # state went with its key, and no row passed another
        seen[key] += 1
        assert total == seen[key]
        assert value > last[key]
        last[key] = value
    assert seen.total() == worker.tuples_in


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(1, 4), st.sampled_from([0, 1]), st.booleans())
@example(seed=4, kills=4, ackers=1, changes=True)
@example(seed=9537, kills=3, ackers=0, changes=True)
def test_whoever_is_killed_what_arrived_was_processed_or_dropped_or_died_with_it(done, seed, kills, ackers, changes):
    """By the counts of the dead at their death, which nobody but this test knows."""
    order = random.Random(seed)
    local = LocalRuntime(
        flooded(parallelism=2, buffer=60, rate=1500, seconds=1.5), seed=seed, settings=Settings(ackers=ackers)
    )
    local.throttle("worker", 500, 1.0)
    start, last = local.clock(), {}
    while local.driver.phase != "ended":
        if local.driver.phase == "running" and order.random() < 0.02:
            living = [i for i in local.driver.units["worker"].subs if local.lives(i)]
            if changes and order.random() < 0.5:
                change(local, "worker", "scale", order.randint(1, 4))
            elif kills and living:
                kills -= 1
                local.kill(order.choice(living))
        for incarnation, seat in local._processes.items():
            if hasattr(seat.core, "reader") and seat.core.reader.bound is not None:
                last[incarnation] = seat.core
        if not local.step():
            local.wait()
        assert local.clock() - start < 100, "stuck"
    assert local.driver.failure is None
    done.of(local, "rescale", "death")
    rows = [core.counts() for core in last.values()]
    arrivals, dropped = sum(r.arrivals for r in rows), sum(r.dropped for r in rows)
    processed = sum(r.tuples_in for r in rows)
    # Of the backlog of all that ever lived, what was handed over is with others; what is left died with its process.
    died = sum(core.reader.backlog for core in last.values())
    assert arrivals == processed + dropped + died
    assert died == 0 or local.driver.deaths
    report = local.report()
    assert report.roots.open == 0
    # Nothing is missing but what was dropped: each of the 2240 was processed or dropped at least once.
    landed = {value for _, (_, value) in local.emitted("worker")}
    assert len(landed) + dropped >= 2240
    if not local.driver.deaths:
        assert report.roots.replayed == 0


@pytest.mark.slow
def test_with_checkpoints_what_lands_is_what_was_processed_once():
    local = LocalRuntime(
        flooded(parallelism=2, buffer=50, seconds=4.0), settings=Settings(delivery="eo", checkpoint_every=0.5), seed=3
    )
    local.throttle("worker", 300, 3.0)
    local.run_for(1.5)
    local.kill(local.sub_units("worker")[0])
    local.run_until_drained()
    assert local.report().restores
    totals = defaultdict(list)
    values = []
    for row in local.landed("out"):
        totals[row.key].append(row.value[0])
        values.append(row.value[1])
    assert all(sorted(found) == list(range(1, len(found) + 1)) for found in totals.values())
    assert len(values) == len(set(values))
    assert local.report().units["worker"].dropped > 0
