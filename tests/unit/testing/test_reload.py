"""LocalRuntime puts state through bytes: what a move would break, a user's own test finds without one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from esault import BatchBolt, Bolt, Topology, by_key, shuffle, single
from esault.errors import TopologyFailed
from esault.messages.settings import Settings
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.windows import CountWindow

ROWS = [("a", 1), ("b", 2), ("a", 3)]


def run(factory, grouping=by_key, rows=ROWS, **options):
    t = Topology("reload")
    t.spout("rows", Items(rows)).bolt("worker", factory, grouping=grouping(), **options)
    local = LocalRuntime(t)
    local.run_until_drained()
    return local


class Forgets(Bolt):
    """Keeps out of its state what it needs."""

    def __init__(self):
        self.seen = []

    def __getstate__(self):
        return {}

    def process(self, key, value):
        self.seen.append(value)

    def finish(self):
        self.emit(self.key, self.seen)


@pytest.mark.parametrize("grouping", [by_key, shuffle, single])
def test_state_that_is_left_out_is_missed_at_once(grouping):
    assert all(not seen for _, seen in run(Forgets, grouping).emitted("worker"))


def test_an_object_that_comes_back_is_opened_and_the_one_that_went_was_closed():
    calls = []

    class Client(Bolt):
        def open(self, context):
            calls.append(("open", self.key))
            self.client = object()

        def __getstate__(self):
            return {name: value for name, value in vars(self).items() if name != "client"}

        def close(self):
            calls.append(("close", self.key))

        def process(self, key, value):
            assert self.client is not None

    run(Client)
    opened = [key for what, key in calls if what == "open"]
    closed = [key for what, key in calls if what == "close"]
    assert sorted(opened) == sorted(closed)
    assert opened.count("a") >= 1


class Broken(Bolt):
    """Comes back as something that does not work."""

    def __init__(self):
        self.items = [1]

    def __setstate__(self, state):
        self.items = None

    def process(self, key, value):
        self.items.append(value)


@pytest.mark.parametrize("grouping", [by_key, shuffle, single])
def test_a_restored_object_that_does_not_work_fails_in_the_test(grouping):
    with pytest.raises(TopologyFailed, match="'NoneType' object has no attribute 'append'"):
        run(Broken, grouping, [("a", i) for i in range(2000)])


class Keeps(BatchBolt):
    def process_batch(self, rows):
        for key, value in rows:
            self.keyed.setdefault(key, []).append(value)

    def finish(self):
        self.emit_batch(list(self.keyed.items()))


def test_the_state_of_a_batch_bolt_and_of_windows_goes_through_bytes_too():
    assert sorted(run(Keeps).emitted("worker")) == [("a", [1, 3]), ("b", [2])]

    class Lists(Bolt):
        def __init__(self):
            self.items = []

        def process(self, key, value):
            self.items.append(value)

        def finish(self):
            self.emit(self.key, self.items)

    t = Topology("windows")
    t.spout("rows", Items([("a", i) for i in range(10)])).window("lists", Lists, CountWindow(4))
    local = LocalRuntime(t)
    local.run_until_drained()
    assert local.emitted("lists") == [("a", [0, 1, 2, 3]), ("a", [4, 5, 6, 7]), ("a", [8, 9])]


@pytest.mark.parametrize("settings", [Settings(), Settings(delivery="eo", checkpoint_every=0.05)])
def test_settings_that_say_nothing_of_these_checks_leave_them_on(settings):
    class Changes(Bolt):
        def process(self, key, value):
            given = [value]
            self.emit(key, given)
            given.append(0)

    t = Topology("reload")
    t.spout("rows", Items(ROWS)).bolt("worker", Changes, grouping=by_key())
    with pytest.raises(TopologyFailed, match="changed a value of type list after it had emitted it"):
        LocalRuntime(t, settings=settings).run_until_drained()
    LocalRuntime(t, settings=replace(settings, watch_values=False)).run_until_drained()
    t = Topology("reload")
    t.spout("rows", Items(ROWS)).bolt("worker", Forgets, grouping=by_key())
    for reload_state, kept in ((None, False), (False, True)):
        local = LocalRuntime(t, settings=replace(settings, reload_state=reload_state))
        local.run_until_drained()
        assert any(seen for _, seen in local.emitted("worker")) is kept
