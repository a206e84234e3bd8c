"""State that `open` sets is refused with the first tuple; what is meant is not."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any

import pytest

from esault import Bolt, Topology, TopologyFailed, by_key, shuffle, single
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.sources import Items
from esault.testing import LocalRuntime


class InOpen(Bolt):
    def open(self, context):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


class Counted(Bolt):
    def open(self, context):
        self.seen = Counter()

    def process(self, key, value):
        self.seen[value] += 1
        self.emit(key, len(self.seen))


class Appended(Bolt):
    """Changed on a rare branch alone."""

    def open(self, context):
        self.last = []

    def process(self, key, value):
        if value > 1000:
            self.last.append(value)
        self.emit(key, value)


class ByAnotherName(Bolt):
    def open(self, context):
        self.seen = {}

    def process(self, key, value):
        seen = self.seen
        seen[value] = True
        self.emit(key, len(seen))


class Awaited(Bolt):
    async def open(self, context):
        self.total = 0

    async def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


class Helped(InOpen):
    def process(self, key, value):
        self.add(value)
        self.emit(key, self.total)

    def add(self, value):
        self.total = self.total + value


class WhereItIsNotThere(Bolt):
    def open(self, context):
        if not hasattr(self, "total"):
            self.total = 0

    process = InOpen.process


class Evolved(Bolt):
    """Old state had a list."""

    def __init__(self):
        self.seen: Any = []

    def open(self, context):
        self.seen = set(self.seen)

    def process(self, key, value):
        self.seen.add(value)
        self.emit(key, len(self.seen))


class Meant(Bolt):
    """What is new at each place, and what is read once."""

    def __init__(self):
        self.total = 0

    def open(self, context):
        self.place = context.sub_unit
        self.limits = {"a": 5}
        self.opened = getattr(self, "opened", 0) + 1

    def process(self, key, value):
        self.total += min(value, self.limits.get(key, value))
        self.emit(key, self.total)


class LeftOut(Bolt):
    def open(self, context):
        self.cache = {}

    def __getstate__(self):
        return {}

    def process(self, key, value):
        self.cache[value] = True
        self.emit(key, value)


class ByKey(Bolt):
    """What `open` gives follows from the key, and calls of several keys end in any order."""

    async def open(self, context):
        self.url = f"https://example.org/{self.key}"

    async def process(self, key, value):
        await asyncio.sleep(0.01 if value == 1 else 0)
        self.emit(key, value)


def runtime(bolt, grouping=by_key, **options):
    def topology():
        t = Topology("t")
        t.spout("in", Items([("a", 1), ("b", 2), ("a", 3)])).bolt("count", bolt, grouping=grouping(), **options)
        return t

    return LocalRuntime(topology())


@pytest.mark.parametrize(
    ("bolt", "name"),
    [
        (InOpen, "total"),
        (Counted, "seen"),
        (Appended, "last"),
        (ByAnotherName, "seen"),
        (Awaited, "total"),
        (Helped, "total"),
    ],
)
def test_state_that_open_sets_is_refused_with_the_first_tuple_and_the_remedy(bolt, name):
    local = runtime(bolt)
    with pytest.raises(TopologyFailed) as failed:
        local.run_until_drained()
    text = " ".join(str(failed.value).split())
    assert f"unit 'count': {bolt.__name__}.open sets self.{name}, which other methods change: it is state" in text
    assert f"def __init__(self): self.{name} = ..." in text


@pytest.mark.parametrize("bolt", [WhereItIsNotThere, Evolved, Meant, LeftOut, ByKey])
def test_what_is_meant_is_opened_and_goes_on_after_a_split(bolt):
    local = runtime(bolt)
    for _ in range(4):
        local.step()
    local.split("count", local.sub_units("count")[0])
    local.run_until_drained()
    last = dict(local.emitted("count"))
    assert last == {WhereItIsNotThere: {"a": 4, "b": 2}, Evolved: {"a": 2, "b": 1}, Meant: {"a": 4, "b": 2}}.get(
        bolt, {"a": 3, "b": 2}
    )


def test_objects_that_never_come_back_may_have_all_in_open():
    local = runtime(InOpen, shuffle)
    local.run_until_drained()
    assert sum(value for _, value in local.emitted("count")) > 0


def test_a_trial_is_closed_and_happens_once():
    said = []

    class Said(Bolt):
        def open(self, context):
            said.append("open")
            self.place = context.sub_unit

        def close(self):
            said.append("close")

        def process(self, key, value):
            self.emit(key, value)

    local = runtime(Said)
    local.run_until_drained()
    assert Counter(said) == {"open": 3, "close": 3}
    assert re.match("open open close", " ".join(said))


class Began(Bolt):
    """Says how many tuples there had been when it was opened last."""

    def __init__(self):
        self.n = 0

    def open(self, context):
        self.began = self.n

    def process(self, key, value):
        self.n += 1
        self.emit(key, (self.n, self.began))


class BeganLater(Began):
    async def open(self, context):
        await asyncio.sleep(0.01)
        self.began = self.n

    async def process(self, key, value):
        super().process(key, value)


class ClosedLater(Began):
    async def process(self, key, value):
        super().process(key, value)

    async def close(self):
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("bolt", [Began, BeganLater, ClosedLater])
@pytest.mark.parametrize("grouping", [by_key(), single()])
@pytest.mark.parametrize("how", ["move", "restore"])
def test_an_object_is_opened_behind_its_state_wherever_it_comes_back(bolt, grouping, how):
    t = Topology("back")
    t.spout("rows", Items([("a", i) for i in range(3000)])).bolt("bolt", bolt, grouping=grouping)
    delivery = Delivery.AT_LEAST_ONCE if how == "move" else Delivery.EXACTLY_ONCE
    local = LocalRuntime(t, settings=Settings(delivery=delivery, reload_state=False, watch_values=False))
    local.run_until(lambda: len(local.emitted("bolt")) > 500)
    if how == "move":
        local.move("bolt", local.sub_units("bolt")[0])
    else:
        local.checkpoint()
        local.run_until(lambda: local.driver.completed is not None)
        local.kill(local.sub_units("bolt")[0])
    local.run_until_drained()
    _, (n, began) = local.emitted("bolt")[-1]
    assert n == 3000 and began > 500
