"""Ticks and expiry go on wherever a key moves: nothing is ticked twice at a time, forgotten, or finished before its time."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter, defaultdict

import pytest
from commands_asked import some_change
from counting import Landed
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_guarantees import EXACTLY, AtTheEnd, Tally, plan_of, shaken

from esault import Bolt, EndOfStream, Spout, Topology, by_key, single
from esault.control.units.rescale_table import RescaleState
from esault.messages.settings import Settings
from esault.sources import Items, Paced
from esault.testing import LocalRuntime

KEYS = "abcdefgh"
EVERY, EXPIRES, LASTS = 0.05, 0.4, 3.0


class Once(Spout):
    """Each key once; then nothing, until the time is over."""

    def open(self, context):
        self.context, self.begun, self.sent = context, context.now(), False

    def read(self, limit):
        if not self.sent:
            self.sent = True
            return [(key, 1) for key in KEYS]
        if self.context.now() > self.begun + LASTS:
            raise EndOfStream
        return []


class Bursts(Once):
    """Each key now and then, with pauses in which it expires; the last second none at all."""

    def __init__(self, seed):
        self.order = random.Random(seed)
        self.next = 0.0

    def open(self, context):
        self.context, self.begun = context, context.now()

    def read(self, limit):
        now = self.context.now() - self.begun
        if now > LASTS:
            raise EndOfStream
        # A key is on in every other half a second, from a time of its own.
        if now < self.next:
            return []
        self.next = now + 0.02
        on = [key for i, key in enumerate(KEYS) if now < LASTS - 1 and int(now + i / 8) % 2 == 0]
        return [(key, 1) for key in on if self.order.random() < 0.5][:limit]


class Ticked(Bolt):
    def __init__(self):
        self.n = 0

    def process(self, key, value):
        pass

    def tick(self, now):
        self.n += 1
        self.emit(self.key, (self.n, now))


class AsyncTicked(Ticked):
    async def process(self, key, value):
        pass

    async def tick(self, now):
        n = self.n
        await asyncio.sleep(0.004)
        self.n = n + 1
        self.emit(self.key, (self.n, now))


class Lives(Bolt):
    """Says at the end of a life how many tuples it had, and how long after the last of them."""

    def __init__(self):
        self.n = 0
        self.last = 0.0

    def process(self, key, value):
        self.n += 1
        self.last = self.context.now()

    def finish(self):
        self.emit(self.key, (self.n, self.context.now() - self.last, self.context.now()))


class AsyncLives(Lives):
    async def process(self, key, value):
        n = self.n
        await asyncio.sleep(0.003)
        self.n, self.last = n + 1, self.context.now()

    async def finish(self):
        await asyncio.sleep(0.003)
        super().finish()


def changed(done, spout, bolt, seed, until, **options):
    """Run with splits, merges and moves; when the last change was over, by the run's clock."""
    t = Topology("timers")
    t.spout("rows", spout).bolt("timed", bolt, by_key(), parallelism=2, **options).sink("out", Landed())
    local = LocalRuntime(t, seed=seed, settings=Settings(root_rows=8))
    order = random.Random(seed)
    begun = last = local.clock()
    while local.driver.phase != "ended":
        running = local.driver.phase == "running"
        if local.driver.units["timed"].change is not None:
            last = local.clock()
        elif running and local.clock() < begun + until and order.random() < 0.02:
            some_change(local, order, ["timed"], ["split", "merge", "move"])
        if not local.step():
            local.wait()
    assert local.driver.failure is None, local.driver.failure
    done.of(local, "split", "merge", "move")
    return local, begun, last


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from([Ticked, AsyncTicked]))
def test_a_key_ticks_on_where_it_has_moved_without_a_tuple(done, seed, bolt):
    local, begun, last = changed(done, Once(), bolt, seed, LASTS / 2, tick_every=EVERY)
    ticks = defaultdict(list)
    for key, value in local.emitted("timed"):
        ticks[key].append(value)
    assert set(ticks) == set(KEYS)
    for values in ticks.values():
        assert [n for n, _ in values] == list(range(1, len(values) + 1))
        times = [now for _, now in values]
        assert times == sorted(times)
        after = [now for now in times if now > last]
        assert len(after) >= (begun + LASTS - last) / EVERY - 3
        assert all(b - a < 2.5 * EVERY for a, b in itertools.pairwise(after))


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from([Lives, AsyncLives]))
def test_a_key_expires_in_its_time_wherever_it_is(done, seed, bolt):
    spout = Bursts(seed)
    local, begun, last = changed(done, spout, bolt, seed, LASTS - 1, expire_after=EXPIRES)
    spouts_ended = begun + LASTS
    lives, ends = Counter(), {}
    for key, (n, idle, now) in local.emitted("timed"):
        lives[key] += n
        ends[key] = now
        assert now > spouts_ended or idle >= EXPIRES - 0.001, "before its time"
    # One sweep of four goes by before an element is seen, and a move begins its time anew.
    latest = max(last, begun + LASTS - 1) + EXPIRES * 1.5 + 0.1
    assert all(now <= latest for now in ends.values()), "long after its time"
    assert lives.total() == local.report().units["rows"].tuples_out
    assert lives.total() > 0


class AsyncTally(Tally):
    async def process(self, key, value):
        n = self.n
        await asyncio.sleep(0.002)
        self.n = n + value

    async def tick(self, now):
        n = self.n
        await asyncio.sleep(0.002)
        if n:
            self.emit(self.key, n)
        self.n = 0


class AsyncAtTheEnd(AtTheEnd):
    async def process(self, key, value):
        total = self.total
        await asyncio.sleep(0.002)
        self.total = total + value

    async def finish(self):
        await asyncio.sleep(0.002)
        self.emit(self.key, self.total)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bolt", "options"), [(AsyncTally, {"tick_every": 0.05}), (AsyncAtTheEnd, {"expire_after": 0.03})]
)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 30), kills=st.integers(0, 3))
@example(seed=1, kills=3)
@example(seed=2, kills=3)
def test_hooks_that_wait_are_kept_together_with_what_they_change(done, bolt, options, seed, kills):
    local = LocalRuntime(plan_of(bolt, 200, concurrency=4, **options), seed=seed, settings=EXACTLY)
    shaken(done, local, seed, kills)
    landed = Counter()
    for row in local.landed("table"):
        landed[row.key] += row.value
    assert landed == Counter("abcdefghijklmnop"[i % 16] for i in range(200))


class AllTicked(Bolt):
    """One object for all, which says at each tick how many tuples there were."""

    def __init__(self):
        self.n = 0

    def process(self, key, value):
        self.n += 1

    def tick(self, now):
        self.emit("all", self.n)


class AsyncAllTicked(AllTicked):
    async def process(self, key, value):
        super().process(key, value)


@pytest.mark.parametrize("bolt", [AllTicked, AsyncAllTicked])
@pytest.mark.parametrize("seed", range(2))
def test_one_object_that_moves_ticks_where_its_state_is_and_nowhere_else(seed, bolt):
    t = Topology("all")
    rows = t.spout("rows", Paced(Items([("a", 1)] * 60), 100))
    rows.bolt("count", bolt, grouping=single(), tick_every=EVERY).sink("out", Landed())
    local = LocalRuntime(t, seed=seed)
    local.run_for(0.2)
    old = local.sub_units("count")[0]
    local.move("count", old)
    unit = local.driver.units["count"]
    local.run_until(lambda: unit.rescaling.state is RescaleState.HOLDING)
    local.freeze(old)
    local.run_for(4 * EVERY)
    local.thaw(old)
    local.wait_for_change("count")
    local.run_until_drained()
    ticks = [row.value for row in local.landed("out")]
    assert ticks == sorted(ticks)
    assert len(ticks) > 4
