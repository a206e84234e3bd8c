"""Resources are left out of the state, and come back by `__init__` and `open`; nothing else is left out."""

from __future__ import annotations

import io
import logging
import queue
import sqlite3
import threading
import types
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from esault import Bolt, Topology, TopologyFailed, by_key, shuffle
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime

ROWS = [(f"k{i % 5}", i) for i in range(400)]


class Numbered(Bolt):
    """Counts the tuples of its key; what else it has, subclasses say."""

    def __init__(self):
        self.n = 0

    def process(self, key, value):
        self.n += 1
        self.emit(key, self.n)


class Opens(Numbered):
    """As people write it: a way to somewhere in `open`, closed in `close`."""

    alive = 0

    def open(self, context):
        self.log = context.logger
        self.context_of_mine = context
        self.connect()
        Opens.alive += 1

    def connect(self):
        self.database = sqlite3.connect(":memory:")

    def process(self, key, value):
        if value % 7 == 0:
            self.database.close()
            self.connect()  # anew, as after an error
        assert self.database.execute("select 1").fetchone() == (1,)
        assert self.context_of_mine.unit == "numbered"
        self.log.debug("a tuple")
        super().process(key, value)

    def close(self):
        self.database.close()
        Opens.alive -= 1


class Adds(Opens):
    """Asks its base for its state."""

    def __getstate__(self):
        return {**super().__getstate__(), "version": 2}

    def __setstate__(self, state):
        assert state.pop("version") == 2
        super().__setstate__(state)


class Begins(Numbered):
    """Makes all in `__init__`, and one thing with its first tuple."""

    pool = None

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()
        self.file = open("/dev/null")  # noqa: SIM115
        self.logger = logging.getLogger("begins")
        self.lazy = None
        self.seen = io.BytesIO()

    def process(self, key, value):
        self.lazy = self.lazy or sqlite3.connect(":memory:")
        self.pool = self.pool or ThreadPoolExecutor(1)
        self.seen.write(b".")  # can be closed as a file can, and is data
        with self.lock:
            super().process(key, value)
        assert len(self.seen.getvalue()) == self.n
        assert self.logger.name == "begins"

    def close(self):
        self.file.close()
        if self.lazy:
            self.lazy.close()
        if self.pool:
            self.pool.shutdown()


class Helped(Numbered):
    """Holds a logger within an object of its own, which is state."""

    def __init__(self):
        super().__init__()
        self.helper = Helper()

    def process(self, key, value):
        self.helper.count += 1
        super().process(key, value)
        assert self.helper.count == self.n
        assert self.helper.log is logging.getLogger("helper")
        assert self.helper.root is logging.getLogger()


class Helper:
    def __init__(self):
        self.count = 0
        self.log, self.root = logging.getLogger("helper"), logging.getLogger()


def topology(bolt, grouping):
    t = Topology("t")
    t.spout("rows", Items(ROWS)).bolt("numbered", bolt, grouping=grouping).sink("out", Collect())
    return t


@pytest.mark.parametrize("bolt", [Opens, Adds, Begins, Helped])
def test_state_moves_and_what_is_a_resource_is_made_again(bolt):
    local = LocalRuntime(topology(bolt, by_key()))
    for wait in (40, 60, 80):
        for _ in range(wait):
            if not local.step():
                local.wait()
        if local.driver.phase == "running" and not local.driver.units["numbered"].changing:
            local.split("numbered", local.sub_units("numbered")[0])
    local.run_until_drained()
    assert Counter(local.emitted("numbered")) == Counter((f"k{i}", n) for i in range(5) for n in range(1, 81))
    assert Opens.alive == 0


@pytest.mark.parametrize("bolt", [Opens, Begins])
def test_one_object_for_all_keys_may_hold_resources(bolt):
    local = LocalRuntime(topology(bolt, shuffle()))
    local.run_until_drained()
    assert sorted(n for _, n in local.emitted("numbered")) == list(range(1, 401))


class Holds(Numbered):
    def __init__(self):
        super().__init__()
        self.waiting = queue.Queue()


class Iterates(Numbered):
    def __init__(self):
        super().__init__()
        self.numbers = iter([1, 2])


class Nowhere(Numbered):
    def process(self, key, value):
        self.lock = threading.Lock()  # `__init__` and `open` do not know of it
        super().process(key, value)


class Inside(Numbered):
    def __init__(self):
        super().__init__()
        self.locks = {"a": threading.Lock()}


class Own:
    """Of the user's: nobody else knows what it holds."""

    def __init__(self):
        self.lock, self.n = threading.Lock(), 0

    def close(self):
        pass


class HoldsOwn(Numbered):
    def open(self, context):
        self.own = Own()


class Says(Numbered):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def __getstate__(self):
        return dict(vars(self))  # what the user says is taken at its word


@pytest.mark.parametrize(
    ("bolt", "name"),
    [
        (Holds, "waiting"),
        (Iterates, "numbers"),
        (Nowhere, "lock"),
        (Inside, "locks"),
        (HoldsOwn, "own"),
        (Says, "lock"),
    ],
)
def test_what_may_hold_data_or_would_not_come_back_is_refused(bolt, name):
    with pytest.raises(TopologyFailed, match=f"attribute '{name}' of {bolt.__name__} cannot be saved or moved"):
        LocalRuntime(topology(bolt, by_key())).run_until_drained()


class Restarts(Numbered):
    """Sets in `open` what is data, though it can be closed."""

    def open(self, context):
        self.seen = io.BytesIO()

    def process(self, key, value):
        self.seen = io.BytesIO(self.seen.getvalue() + b".")
        super().process(key, value)


def test_data_that_open_sets_is_refused_still():
    with pytest.raises(TopologyFailed, match=r"Restarts.open sets self\.seen, which other methods change"):
        LocalRuntime(topology(Restarts, by_key())).run_until_drained()


class Model(types.ModuleType):
    """It holds what cannot travel."""

    def __init__(self):
        super().__init__("model")

    def predict(self, value):
        return value * 2


class KeepsShared(Numbered):
    """Keeps in an attribute what all share."""

    def open_shared(self, context):
        return Model()

    def open(self, context):
        self.model = context.shared

    def process(self, key, value):
        assert self.model is self.context.shared
        super().process(key, self.model.predict(value))


@pytest.mark.parametrize("grouping", [by_key, shuffle])
def test_what_all_objects_share_is_no_state_in_an_attribute_of_one(grouping):
    local = LocalRuntime(topology(KeepsShared, grouping()), settings=Settings(delivery="eo", checkpoint_every=0.01))
    local.run_until(lambda: local.emitted("numbered"))
    local.scale("numbered", 3)
    local.wait_for_change("numbered")
    local.run_until_drained()
    assert len(local.landed("out")) == len(ROWS)


class Loads(Numbered):
    """Sets in `open` what may hold data, as far as the engine can tell."""

    def open(self, context):
        self.model = Model()


def test_what_open_sets_and_is_refused_is_not_to_be_made_in_open():
    with pytest.raises(TopologyFailed, match=r"(?s)Loads\.open sets it, .*return it from open_shared") as refused:
        LocalRuntime(topology(Loads, by_key())).run_until_drained()
    assert "make it in open" not in str(refused.value)
