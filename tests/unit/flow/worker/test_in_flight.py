"""Rows in flight, written and found again by other sub-units."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import count
from types import ModuleType

import pytest

from esault import Bolt, CheckpointError, Topology, broadcast, by_key, shuffle, single
from esault.flow.channel.frame import Batch
from esault.flow.handover.divide import Entry
from esault.flow.worker.in_flight import InFlight, may_wait, write
from esault.messages.checkpoint import Restore
from esault.payload import class_names
from esault.payload.codec import Codec
from esault.payload.schema import describe_all
from esault.routing.ring import INT_MAX
from esault.sources import Items
from esault.testing.memory_state_store import MemoryStateStore

CODEC = Codec()
#: two sub-units, half of the ring each
HALVES = (((0, INT_MAX // 2),), ((INT_MAX // 2 + 1, INT_MAX),))


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def unit(*groupings):
    t = Topology("t")
    spouts = [t.spout(f"in{i}", Items([(1, 1)])) for i in range(len(groupings))]
    t.bolt("same", Same, inputs=dict(zip(spouts, groupings)))
    return t.plan().units["same"]


def entries(number, rows, ids=None):
    keys, values = zip(*rows)
    return [Entry(1.0, Batch((7, 1, 0), 99, number, keys, values, 2.5, ids))]


def piece(store, plan, inbox, incarnation=4):
    return write(inbox, plan, CODEC, store, 3, incarnation, None)


def found(plan, store, pieces, part, parts, ranges=((0, INT_MAX),)):
    restore = Restore(3, (), ranges, False, tuple(pieces))
    numbers = count(1)
    return InFlight(plan, part, parts, restore, store, CODEC, (9, 0, 0), lambda: next(numbers), 5.0)


def test_rows_by_key_go_to_who_has_their_keys_now_and_each_to_one():
    plan, store = unit(by_key()), MemoryStateStore()
    rows = [(f"k{i}", i) for i in range(100)]
    ids = tuple(f"1:{i}" for i in range(100))
    written = piece(store, plan, entries(0, rows, ids))
    halves = [found(plan, store, [written], part, 2, HALVES[part]) for part in range(2)]
    back = [row for half in halves for e in half.entries for row in zip(e.batch.keys, e.batch.values, e.batch.ids)]
    assert sorted(back) == sorted((key, value, f"1:{value}") for key, value in rows)
    assert all(half.rows for half in halves)
    first = halves[0].entries[0].batch
    assert (first.root, first.due) == ((9, 0, 0), 2.5)
    assert halves[0].ids == first.id != 0


def test_rows_that_may_be_anywhere_are_divided_among_those_there_are():
    plan, store = unit(shuffle()), MemoryStateStore()
    pieces = [piece(store, plan, entries(0, [(i, i)]), incarnation=i) for i in range(5)]
    shares = [found(plan, store, pieces, part, 2).rows for part in range(2)]
    assert shares == [3, 2]


def test_one_object_takes_all():
    plan, store = unit(single()), MemoryStateStore()
    pieces = [piece(store, plan, entries(0, [(i, i)]), incarnation=i) for i in range(3)]
    assert found(plan, store, pieces, 0, 1).rows == 3


def test_rows_keep_their_input_also_where_inputs_have_another_order_now():
    plan, store = unit(by_key(), by_key()), MemoryStateStore()
    written = piece(store, plan, entries(0, [("a", 1)]) + entries(1, [("b", 2)]))
    store.pieces[written.name] = [((1 - n, stream), packed) for (n, stream), packed in store.pieces[written.name]]
    by_input = Counter({e.batch.input: e.batch.keys for e in found(plan, store, [written], 0, 1).entries})
    assert by_input == {0: ("a",), 1: ("b",)}


def test_an_input_that_is_gone_is_told_with_the_remedy():
    store = MemoryStateStore()
    written = piece(store, unit(by_key(), by_key()), entries(1, [("b", 2)]))
    with pytest.raises(CheckpointError, match=r"'same': rows in flight cannot be restored.*in1.*--restart"):
        found(unit(by_key()), store, [written], 0, 1)


def test_units_whose_rows_have_one_place_alone_stay_aligned():
    assert may_wait(unit(by_key(), by_key()))
    assert may_wait(unit(shuffle(), shuffle()))
    assert not may_wait(unit(shuffle(), broadcast()))


VISIT = "from dataclasses import dataclass, field\n@dataclass\nclass Visit:\n    page: str\n"


@pytest.mark.parametrize("rows", [1, 10])
def test_rows_of_a_class_that_has_a_new_field_now_get_its_default(rows):
    module = sys.modules["visits_in_flight"] = ModuleType("visits_in_flight")
    try:
        exec(VISIT, vars(module))
        plan, store = unit(by_key()), MemoryStateStore()
        inbox = entries(0, [("a", module.Visit(str(i))) for i in range(rows)])
        written = write(inbox, plan, CODEC, store, 3, 4, describe_all([module.Visit]))
        class_names.forget()
        exec(VISIT + "    tags: list = field(default_factory=list)\n", vars(module))
        (entry,) = found(plan, store, [written], 0, 1).entries
        assert entry.batch.values == tuple(module.Visit(str(i), []) for i in range(rows))
    finally:
        del sys.modules["visits_in_flight"]
        class_names.forget()
