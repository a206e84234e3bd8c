"""The state that a bolt's sub-unit begins with, read from the pieces of a checkpoint."""

from __future__ import annotations

from types import SimpleNamespace

from esault.flow.worker.restore import StateRestore
from esault.messages.checkpoint import Restore
from esault.routing.ring import position
from esault.topology.context import Context

WHOLE = ((0, (1 << 64) - 1),)


class Operator:
    """Takes states; an older version of its class wrote them."""

    def __init__(self):
        self.states, self.read = {}, []

    @property
    def state(self):
        return self

    def own_class(self):
        return None

    def evolved(self, state, evolution):
        self.read.append(state)
        evolution.dropped["", "first"] += 1
        return state.lower()

    def install_state(self, key, state):
        self.states[key] = state


class Store:
    """Pieces by name: keys with their states, as another version of the code wrote them."""

    def __init__(self, **pieces):
        self.pieces = pieces

    def schema(self, piece):
        return {"esault.nothing:Gone": ("a",)}

    def read(self, piece):
        return iter(self.pieces[piece])


def test_of_several_states_of_a_key_only_the_newest_is_read_and_counted():
    store = Store(base=[("a", b"A1"), ("b", b"B1"), ("c", b"C1")], more=[("a", b"A2"), ("c", None)])
    plan = SimpleNamespace(objects="key", keeps_more=False, keeps_watermark=False, window=None)
    restore = StateRestore(plan, Context("u"), Restore(3, (("base", "more"),), WHOLE), store)
    operator = Operator()
    assert restore.into(operator, Operator) == []
    assert operator.states == {"a": b"a2", "b": b"b1"}
    assert sorted(operator.read) == [b"A2", b"B1"]
    assert restore.evolved(operator, 7).dropped == (("keyed", "first", 2, True),)


def test_keys_of_other_ranges_are_left_to_others():
    store = Store(base=[("a", b"A1"), ("b", b"B1")])
    plan = SimpleNamespace(objects="key", keeps_more=False, keeps_watermark=False, window=None)
    mine = ((position("a"), position("a")),)
    operator = Operator()
    StateRestore(plan, Context("u"), Restore(3, (("base",),), mine), store).into(operator, Operator)
    assert operator.states == {"a": b"a1"} and operator.read == [b"A1"]
