"""Live changes under calls that wait: Hypothesis splits, merges, moves, kills and delays while calls end in any order; then all is counted."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from counting import Landed, Nothing, Split, text, totals
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from test_change_machine import EXAMPLES, Fed, Handover
from test_checkpoints import check, states, walk
from test_window_machine import Windows
from walk import prove

from esault import Bolt, Topology, by_key, partial_key, shuffle, single, skip
from esault.messages.settings import Settings
from esault.testing import LocalRuntime

MOST = 3


class Open:
    """Calls that are open, by who has them; what a test looks at from outside of the bolts."""

    def __init__(self, most=MOST):
        self.order = random.Random(0)
        self.most = most
        self.calls = Counter()
        self.keys = set()

    async def wait(self, sub_unit, key):
        assert (sub_unit, key) not in self.keys, "two calls of one key"
        self.keys.add((sub_unit, key))
        self.calls[sub_unit] += 1
        assert self.calls[sub_unit] <= self.most, "too many calls"
        try:
            for _ in range(self.order.randint(0, 2)):
                await asyncio.sleep(self.order.choice([0, 0.001, 0.003, 0.02]))
        finally:
            self.keys.discard((sub_unit, key))
            self.calls[sub_unit] -= 1


class AsyncSplit(Bolt):
    opened = Open()

    async def process(self, key, value):
        await self.opened.wait(self.context.sub_unit, key)
        for word in value.split():
            self.emit(word, 1)


class AsyncCount(Bolt):
    """Counts across the wait: a second call of the same key, or state that went before the call's end, would be seen."""

    opened = Open()

    def __init__(self):
        self.total = 0

    async def process(self, key, value):
        before = self.total
        await self.opened.wait(self.context.sub_unit, id(self))
        self.total = before + value
        self.emit(key, self.total)


class Unlucky(AsyncCount):
    """Every third try fails, after it has waited and emitted."""

    def __init__(self):
        self.total = self.tries = 0

    async def process(self, key, value):
        self.tries += 1
        self.emit(key, -1)
        await self.opened.wait(self.context.sub_unit, id(self))
        if self.tries % 3 == 0:
            raise ValueError("unlucky")
        self.total += value
        self.emit(key, self.total)


class AsyncCountAll(Bolt):
    opened = Open()

    def __init__(self):
        self.totals = {}

    async def process(self, key, value):
        before = self.totals.get(key, 0)
        await self.opened.wait(self.context.sub_unit, key)
        self.totals[key] = before + 1
        self.emit(key, before + 1)


def chain(feed, grouping, count=AsyncCount, **options):
    """Stateless, then stateful, both waiting."""
    t = Topology("chain")
    lines = t.spout("lines", Fed(feed), parallelism=2)
    split = lines.bolt("split", AsyncSplit, grouping=shuffle(), parallelism=2, concurrency=MOST)
    counted = split.bolt("count", count, grouping=grouping, parallelism=2, concurrency=MOST, **options)
    counted.sink("table", Landed())
    return t


def alone(feed, grouping):
    """One object for all, which moves."""
    t = Topology("alone")
    split = t.spout("lines", Fed(feed)).bolt("split", Split, grouping=shuffle(), parallelism=2)
    split.bolt("count", AsyncCountAll, grouping=single(), concurrency=MOST).sink("table", Landed())
    return t


class AsyncChanges(Handover):
    topology = staticmethod(chain)

    @rule(seed=st.integers(0, 1 << 20))
    def reorder(self, seed):
        """Calls take other times from now on."""
        for bolt in (AsyncSplit, AsyncCount, AsyncCountAll):
            bolt.opened.order.seed(seed)

    def teardown(self):
        super().teardown()
        for bolt in (AsyncSplit, AsyncCount, AsyncCountAll):
            assert not bolt.opened.keys
            assert not bolt.opened.calls.total()


class AsyncKilled(AsyncChanges):
    kills = 4


class AsyncPartial(AsyncChanges):
    grouping = staticmethod(partial_key)

    def check_order(self, words):
        assert Counter(word for word, _ in self.local.emitted("count")) == words


class AsyncSingle(AsyncChanges):
    topology = staticmethod(alone)


class AsyncErrors(AsyncChanges):
    """Some tries fail and are repeated: what a failed one emitted is never seen."""

    topology = staticmethod(
        lambda feed, grouping: chain(feed, grouping, Unlucky, on_error=skip(retries=2), expire_after=3600)
    )
    emits = 2

    def check_order(self, words):
        seen = Counter()
        for word, value in self.local.emitted("count"):
            if value == -1:
                continue
            assert value == seen[word] + 1, word
            seen[word] = value
        assert seen == words
        tries = Counter(word for word, value in self.local.emitted("count") if value == -1)
        assert tries == words, "each tuple has one try that counts"


class PassLater(Bolt):
    opened = Open(most=64)

    async def process(self, key, value):
        await self.opened.wait(self.context.sub_unit, (id(self), key))
        self.emit(key, value)


class WindowsBehind(Windows):
    """A watermark passes calls that are open as little as it passes rows that wait: no row is late."""

    passing = {"passing": PassLater, "grouping": by_key()}


class WindowsBehindShuffled(Windows):
    passing = {"passing": PassLater}


@pytest.mark.slow
@pytest.mark.parametrize(
    "machine",
    [AsyncChanges, AsyncKilled, AsyncPartial, AsyncSingle, AsyncErrors, WindowsBehind, WindowsBehindShuffled],
    ids=lambda machine: machine.__name__,
)
def test_nothing_is_lost_while_calls_wait(done, machine):
    prove(machine, max(1, EXAMPLES * 2 // 5), done)


def waiting_words():
    t = Topology("words")
    split = t.spout("lines", Nothing()).bolt("split", AsyncSplit, grouping=shuffle(), parallelism=2, concurrency=MOST)
    count = split.bolt("count", AsyncCount, grouping=by_key(), parallelism=2, concurrency=MOST)
    count.sink("table", Landed())
    return t


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(0, 4))
@example(seed=4398, kills=0)
def test_a_checkpoint_is_a_cut_behind_calls_that_were_open(done, seed, kills):
    rows = [(f"f{i % 5}", line) for i, (_, line) in enumerate(text(100))]
    # Else it also holds rows in flight, which tests/unit/testing/test_unaligned_checkpoints.py counts.
    options = Settings(delivery="eo", max_pending=4, root_rows=16, aligned_checkpoint_timeout=100.0)
    local = LocalRuntime(waiting_words(), spouts={"lines": rows}, seed=seed, settings=options)
    walk(local, random.Random(seed), kills=kills)
    done.of(local, "change", "checkpoint")
    assert local.kept
    if not kills:
        check(local, rows)
    want = totals(rows)
    landed = local.landed("table")
    for word, n in want.items():
        assert sorted(row.value for row in landed if row.key == word) == list(range(1, n + 1))
    assert states(local, "count", local.kept[-1].number) == want
