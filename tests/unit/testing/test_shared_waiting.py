"""A unit that takes its tuples by shuffle() grows: what waits with those that it has is shared with the new ones."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from counting import Landed, Nothing

from esault import Bolt, Topology, by_key, shuffle
from esault.messages.settings import Settings
from esault.testing import LocalRuntime

CALLS = 32


class Call(Bolt):
    """Takes a second for each tuple."""

    async def process(self, key, value):
        await asyncio.sleep(1.0)
        self.emit(value % 5, (value, self.context.sub_unit))


class Plus(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def calls(behind=None):
    t = Topology("calls")
    call = t.spout("in", Nothing()).bolt("call", Call, grouping=shuffle(), concurrency=1)
    if behind is not None:
        call = call.bolt("behind", Plus, grouping=behind)
    call.sink("out", Landed())
    return t


def begun(seed=0, delivery="alo", **options):
    """All tuples wait for the one sub-unit, which has begun with the first."""
    rows = [(None, i) for i in range(CALLS)]  # of one key: what decides who gets one is not that
    chosen = Settings(max_pending=100, root_rows=1, frame_rows=1, watch_values=False, chaining=False, delivery=delivery)
    local = LocalRuntime(calls(**options), spouts={"in": rows}, seed=seed, settings=chosen)
    local.run_until(lambda: len(local.emitted("call")) == 2)
    return local


def done(local):
    return [value for _, (value, _) in local.emitted("call")]


@pytest.mark.parametrize("n", [2, 4, 9])
@pytest.mark.parametrize("seed", range(2))
def test_what_waits_is_shared_with_new_sub_units(n, seed):
    local = begun(seed)
    began = local.now()
    local.scale("call", n)
    local.run_until_drained()
    assert sorted(done(local)) == list(range(CALLS))
    each = Counter(sub_unit for _, (_, sub_unit) in local.emitted("call"))
    assert len(each) == n
    # as long as the fair share takes, and some more: calls were open, and shares are whole tuples
    assert local.now() - began <= CALLS / n + 2.5
    assert local.report().roots.replayed == 0


def test_several_growths_share_each_time():
    local = begun()
    began = local.now()
    for n in (2, 3, 8):
        local.scale("call", n)
        local.wait_for_change("call")
    local.run_until_drained()
    assert sorted(done(local)) == list(range(CALLS))
    assert local.now() - began <= CALLS / 8 + 6


@pytest.mark.parametrize("grouping", [shuffle(), by_key()])
def test_the_next_unit_gets_each_tuple_once(grouping):
    local = begun(behind=grouping)
    local.scale("call", 4)
    local.run_for(1.2)
    local.scale("call", 2)
    local.run_until_drained()
    assert sorted(value for _, (value, _) in local.emitted("behind")) == list(range(CALLS))


@pytest.mark.parametrize("delivery", ["alo", "none", "eo"])
@pytest.mark.parametrize("seed", range(3))
def test_whoever_dies_while_it_is_shared_nothing_is_missing(delivery, seed):
    order = random.Random(seed)
    local = begun(seed, delivery)
    local.scale("call", 4)
    for _ in range(order.randrange(60)):
        if not local.step():
            local.wait()
    if delivery != "none":
        living = [i for i in local.driver.units["call"].subs if local.lives(i)]
        local.kill(order.choice(living))
    local.run_until_drained(600.0)
    ids = Counter(row.id for row in local.landed("out"))
    assert len(ids) == CALLS
    if delivery != "alo":
        assert set(ids.values()) == {1}


def test_a_sender_that_stands_still_does_not_hold_up_what_waits():
    """New sub-units work on what it has sent already, while it has not seen its new table."""
    local = begun()
    (sender,) = local.driver.units["in"].subs
    local.freeze(sender)
    local.scale("call", 4)
    local.run_for(4.5)
    assert len(done(local)) >= 2 + 3 * 4
    local.thaw(sender)
    local.run_until_drained()
    assert sorted(done(local)) == list(range(CALLS))


def test_fewer_sub_units_finish_what_they_have():
    local = begun()
    local.scale("call", 4)
    local.wait_for_change("call")
    local.scale("call", 1)
    local.run_until_drained()
    assert sorted(done(local)) == list(range(CALLS))


class Words(Bolt):
    def process(self, key, value):
        for number in range(value):
            self.emit(key, number)


class Busy(Bolt):
    def process(self, key, value):
        self.emit(self.context.sub_unit, value)


def test_what_one_call_emits_is_divided_among_all_sub_units():
    t = Topology("words")
    words = t.spout("lines", Nothing()).bolt("words", Words, grouping=shuffle())
    words.bolt("busy", Busy, grouping=shuffle(), parallelism=12)
    local = LocalRuntime(t, spouts={"lines": [("line", 100)] * 6})
    local.run_until_drained()
    got = Counter(sub_unit for sub_unit, _ in local.emitted("busy"))
    assert sum(got.values()) == 600 and len(got) == 12
    assert max(got.values()) <= 60
