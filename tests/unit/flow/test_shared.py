"""What all objects of a sub-unit share: opened once, and closed at the end."""

from __future__ import annotations

import asyncio

import pytest

from esault import Bolt, by_key, shuffle, single, skip
from esault.testing import LocalRuntime, ManualClock
from tests.unit.flow import small

ROWS = [(f"k{i % 20}", i) for i in range(100)]


class Log(list):
    def made(self, word):
        return [each for each in self if each[0] == word]


LOG = Log()


@pytest.fixture(autouse=True)
def empty():
    LOG.clear()


class Client:
    def __init__(self, url):
        self.url = url


class Shares(Bolt):
    def __init__(self, url="http://x"):
        self.url = url

    def open_shared(self, context):
        LOG.append(("opened", context.sub_unit))
        return Client(self.url)

    def close_shared(self, shared):
        LOG.append(("closed", self.context.sub_unit, shared.url))

    def process(self, key, value):
        self.emit(key, (self.context.shared.url, id(self.context.shared)))


class Opens(Shares):
    def open(self, context):
        assert isinstance(context.shared, Client)


class Waits(Shares):
    async def open_shared(self, context):
        await asyncio.sleep(0.1)
        return super().open_shared(context)

    async def open(self, context):
        assert isinstance(context.shared, Client)

    async def process(self, key, value):
        await asyncio.sleep(0.01)
        super().process(key, value)

    async def close(self):
        assert isinstance(self.context.shared, Client)

    async def close_shared(self, shared):
        await asyncio.sleep(0.1)
        super().close_shared(shared)


@pytest.mark.parametrize("bolt", [Shares, Opens, Waits, lambda: Shares("http://y")])
@pytest.mark.parametrize("grouping", [by_key(), shuffle(), single()])
def test_it_is_opened_once_in_each_sub_unit_and_closed_once(bolt, grouping):
    parallelism = 1 if grouping == single() else 3
    local = small.run(small.through(ROWS, bolt, grouping=grouping, parallelism=parallelism))
    found = [value for _, value in local.emitted("worker")]
    assert len(found) == len(ROWS)
    assert {url for url, _ in found} == {"http://y" if not isinstance(bolt, type) else "http://x"}
    opened = [number for _, number in LOG.made("opened")]
    assert len(opened) == len(set(opened)) <= parallelism
    assert len({number for _, number in found}) <= len(opened)
    assert sorted(number for _, number, _ in LOG.made("closed")) == sorted(opened)


def test_one_that_moves_finds_that_of_its_new_sub_unit():
    local = LocalRuntime(small.through(ROWS * 20, Shares))
    local.run_until(lambda: local.emitted("worker"))
    local.scale("worker", 3)
    local.run_until_drained()
    assert len(local.emitted("worker")) == len(ROWS) * 20
    assert len(LOG.made("opened")) == len(LOG.made("closed")) == 3


def test_it_is_open_before_the_first_tuple_comes_and_before_keys_move():
    local = LocalRuntime(small.through([], Shares))
    local.run_for(0.1)
    assert len(LOG.made("opened")) == 1
    opened, moved = [], []

    class Moves(Shares):
        def open_shared(self, context):
            opened.append(context.sub_unit)
            return super().open_shared(context)

        def __setstate__(self, state):
            moved.append(len(opened))
            super().__setstate__(state)

    local = LocalRuntime(small.through(ROWS * 20, Moves))
    local.run_until(lambda: local.emitted("worker"))
    local.scale("worker", 3)
    local.run_until_drained()
    assert moved and set(moved) <= {1, 3}  # 1: state that is tried with the first object


@pytest.mark.parametrize("waits", [False, True])
def test_an_error_of_it_is_one_of_the_tuple_and_the_next_tries_anew(waits):
    left = [2]

    class Away(Waits if waits else Shares):
        def open_shared(self, context):
            if left[0]:
                left[0] -= 1
                raise ConnectionError("away")
            return super().open_shared(context)

    if waits:

        async def open_shared(self, context):
            await asyncio.sleep(0)
            if left[0]:
                left[0] -= 1
                raise ConnectionError("away")
            return Client("http://x")

        Away.open_shared = open_shared
    local = small.run(small.through(ROWS, Away, on_error=skip(retries=5)))
    assert len(local.emitted("worker")) == len(ROWS)


CLOCK = ManualClock(0)


class Loads(Bolt):
    """Loads a model for each key."""

    takes = 0.3

    def open(self, context):
        self.model = "loaded"
        CLOCK.advance(type(self).takes)

    def process(self, key, value):
        self.emit(key, value)


class Quick(Loads):
    takes = 0.001


@pytest.mark.parametrize(("bolt", "rows", "says"), [(Loads, ROWS, 1), (Loads, ROWS[:3], 0), (Quick, ROWS, 0)])
def test_an_open_that_takes_long_for_each_key_is_said_once(bolt, rows, says, caplog):
    t = small.through(rows, bolt)
    LocalRuntime(t, clock=CLOCK).run_until_drained()
    assert caplog.text.count("it is called for each key") == says
    assert not says or "unit 'worker': Loads.open has taken 1.5 s for 5 objects" in caplog.text


def test_units_that_are_chained_do_not_see_each_others():
    from esault import Topology
    from esault.messages.settings import Settings
    from esault.sources import Items

    class Sees(Bolt):
        def process(self, key, value):
            self.emit(key, self.context.shared)

    t = Topology("t")
    t.spout("in", Items(ROWS)).bolt("a", Shares, grouping=shuffle()).bolt("b", Sees, grouping=shuffle())
    local = LocalRuntime(t, settings=Settings(chaining=True))
    local.run_until_drained()
    assert {value for _, value in local.emitted("b")} == {None}
