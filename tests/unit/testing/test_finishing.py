"""`context.finishing` says in `finish` why it is called."""

from __future__ import annotations

import pytest
from slowly import Slowly

from esault import Bolt, Topology, by_key, single
from esault.messages.settings import Settings
from esault.testing import LocalRuntime
from esault.windows import CountWindow, TumblingWindow


class Why(Bolt):
    def process(self, key, value):
        pass

    def finish(self):
        self.emit(self.key, self.context.finishing)


class AsyncWhy(Bolt):
    async def process(self, key, value):
        pass

    async def finish(self):
        self.emit(self.key, self.context.finishing)


class One(Why):
    def finish(self):
        self.emit("one", self.context.finishing)


ROWS = [("a", 1.0), ("b", 2.0), *(("b", float(second)) for second in range(30, 91))]


def emitted(build):
    topology = Topology("why")
    build(topology.spout("rows", Slowly(ROWS), time=lambda value: value))
    local = LocalRuntime(topology, settings=Settings(max_pending=2, root_rows=4, frame_rows=2))
    local.run_until_drained()
    return local.emitted("why")


def test_a_window_that_has_closed_and_one_that_is_cut_short():
    found = emitted(lambda rows: rows.window("why", Why, TumblingWindow(50)))
    assert sorted(found) == [("a", "window"), ("b", "drained"), ("b", "window")]
    found = emitted(lambda rows: rows.window("why", Why, CountWindow(40)))
    assert sorted(found) == [("a", "drained"), ("b", "drained"), ("b", "window")]


@pytest.mark.parametrize("bolt", [Why, AsyncWhy])
def test_a_key_that_expired_and_one_at_the_end(bolt):
    assert sorted(emitted(lambda rows: rows.bolt("why", bolt, grouping=by_key()))) == [
        ("a", "drained"),
        ("b", "drained"),
    ]
    found = emitted(lambda rows: rows.bolt("why", Why, grouping=by_key(), expire_after=20, expire_by="event"))
    assert sorted(found) == [("a", "expired"), ("b", "drained")]


def test_one_object():
    assert emitted(lambda rows: rows.bolt("why", One, grouping=single())) == [("one", "drained")]
