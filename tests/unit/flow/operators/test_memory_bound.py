"""Keys beyond the bound have their states on a disk: what comes out is what comes out where all are in memory."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault import Bolt, Topology, TopologyError, by_key, shuffle
from esault.aggregates import count
from esault.flow.operators import memory_bound
from esault.flow.operators.elements import Elements
from esault.flow.operators.memory_bound import LEAST, MemoryBound
from esault.flow.operators.packed_states import InMemory
from esault.flow.operators.state_clearing import StateClearing
from esault.messages.settings import Settings
from esault.payload.codec import Codec
from esault.sinks import Collect
from esault.sources import Items, Paced
from esault.state import states_on_disk
from esault.state.states_on_disk import StatesOnDisk
from esault.testing import LocalRuntime
from esault.windows import TumblingWindow

KEYS = [True, 1, False, 0, (True, "a"), (1, "a"), *"abcdefgh"]


class Numbered(Bolt):
    """Numbers the tuples of a key, and says at the end how many there were."""

    def __init__(self):
        self.seen = []

    def process(self, key, value):
        self.seen.append(value)
        self.emit(key, (len(self.seen), value))

    def finish(self):
        self.emit(self.key, ("all", tuple(self.seen)))


def rows_of(rows, change=None, **options):
    t = Topology("t")
    # Batches of three: the bound is looked at behind each.
    t.spout("rows", Paced(Items(rows), 10_000, burst=3)).bolt("number", Numbered, by_key(), **options).sink(
        "out", Collect()
    )
    local = LocalRuntime(t, settings=Settings())
    if change is not None:
        local.run_for(0.02)
        change(local)
    local.run_until_drained()
    return sorted([(row.key, row.value) for row in local.landed("out")], key=repr), local


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 9)), max_size=40), st.integers(1, 6))
def test_it_makes_no_difference(rows, most):
    assert rows_of(rows, keys_in_memory=most)[0] == rows_of(rows)[0]


def test_nor_while_keys_move():
    rows = [(f"k{i % 40}", i) for i in range(400)]
    expected, _ = rows_of(rows)
    found, local = rows_of(rows, lambda local: local.scale("number", 3), parallelism=1, keys_in_memory=4)
    assert found == expected
    assert max(n for _, n in local.report().units["number"].parallelism) == 3


class Made:
    def __init__(self):
        self.closed = False

    def __getstate__(self):
        return {"n": 1}

    def __setstate__(self, state):
        pass


def bound(most, states=InMemory, logger=None):
    closed = []
    elements = Elements("u", Made, lambda element, key: None, closed.append, Codec())
    found = MemoryBound("u", elements, states, logger or logging.getLogger("t"))
    if most is not None:
        found.set(most)
    return found, elements, closed


def test_those_that_came_first_go_and_those_that_come_often_stay():
    memory, elements, closed = bound(4)
    for key in "abcdef":
        elements[key]
    memory.use("ab")
    assert not memory.keep(0.0)
    assert sorted(elements) == ["a", "b", "e", "f"]
    assert (memory.away, len(closed)) == (2, 2)
    for key in "gh":
        elements[key]
    memory.keep(1.0)
    assert sorted(elements) == ["a", "b", "g", "h"]  # behind those that came in between, once
    for key in "ij":
        elements[key]
    memory.keep(2.0)
    assert sorted(elements) == ["g", "h", "i", "j"]


def test_where_all_came_lately_some_go_all_the_same():
    memory, elements, _ = bound(2)
    for key in "abcd":
        elements[key]
    memory.use("abcd")
    memory.keep(0.0)
    assert len(elements) == 2


def test_it_is_done_in_slices_and_keeps_up_with_what_comes(monkeypatch):
    monkeypatch.setattr(memory_bound, "SLICE", 10)
    memory, elements, _ = bound(5)
    for i in range(100):
        elements[f"k{i}"]
    assert memory.keep(0.0, 50)
    assert elements.here == 40
    turns = 1
    while memory.keep(0.0):
        turns += 1
    assert (elements.here, turns) == (5, 4)


def test_halving_takes_what_is_there_and_has_an_end():
    memory, elements, _ = bound(None)
    assert not memory.keep(0.0)
    for i in range(1000):
        elements[f"k{i}"]
    for most in (500, 250, 125, LEAST, LEAST):
        memory.halve()
        assert memory.most == most
        while memory.keep(0.0):
            pass
        assert elements.here == most
    assert (memory.away, elements.count) == (1000 - LEAST, 1000)


def test_what_was_put_away_before_goes_along():
    memory, elements, _ = bound(None)
    elements["a"]
    elements.put_away("a")
    places = []
    memory._states = lambda: places.append(InMemory()) or places[-1]
    memory.set(1)
    assert list(places[0]) == ["a"]
    assert elements["a"].key == "a"
    assert not places[0]


def test_names_of_keys_that_have_gone_do_not_pile_up():
    memory, elements, _ = bound(4)
    for i in range(100):
        elements[f"k{i}"]
        memory.use([f"k{i}"])
        elements.forget(f"k{i}")
        assert len(memory._used) <= memory_bound.USED * 4 + 1


def test_the_rows_of_keys_whose_state_was_cleared_do_not_pile_up_on_the_disk(monkeypatch):
    monkeypatch.setattr(states_on_disk, "AT_ONCE", 8)
    states = StatesOnDisk(Codec())
    memory, elements, _ = bound(4, lambda: states)
    clearing = StateClearing(elements, None)
    for i in range(200):
        elements[f"k{i}"]
        memory.keep(0.0)
        if i >= 20:
            clearing._clear(elements[f"k{i - 20}"])
        assert elements.count == min(i + 1, 20)
    assert states._rows < 20 + 3 * 8
    assert len(states._old) < 2 * 8
    clearing.cleared.clear()
    assert elements["k1"].key == "k1"
    states.close()


class Full(InMemory):
    def __setitem__(self, name, state):
        super().__setitem__(name, state)
        raise OSError("no room")


def test_a_full_disk_is_told_once_and_tried_again(caplog):
    memory, elements, _ = bound(1, Full)
    for key in "abcd":
        elements[key]
    with caplog.at_level(logging.ERROR):
        assert not memory.keep(0.0)
        assert elements.here == 3  # the state of the first one is in memory: nothing is lost
        assert not memory.keep(1.0)
        assert elements.here == 3
        memory.keep(memory_bound.AGAIN)
    assert elements.here == 2
    assert [record.getMessage() for record in caplog.records] == [
        "unit 'u': no room. They stay in memory; it is tried again"
    ]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"tick_every": 1.0}, "timers"),
        ({"keys_in_memory": 0}, "a whole number of keys from 1 on"),
        ({"keys_in_memory": True}, "a whole number of keys from 1 on"),
        ({"grouping": shuffle()}, "one object per sub-unit, and not one per key"),
    ],
)
def test_what_does_not_go_with_it_is_refused(options, why):
    t = Topology("t")
    rows = t.spout("rows", Items([("a", 1)]))
    options = {"grouping": by_key(), "keys_in_memory": 5, **options}
    with pytest.raises(TopologyError, match=f"unit 'n'.*keys_in_memory.*{why}"):
        rows.bolt("n", Numbered, **options)


def test_windows_are_refused():
    rows = Topology("t").spout("rows", Items([("a", 1)]))
    with pytest.raises(TopologyError, match="keys_in_memory"):
        rows.aggregate("n", {"n": count()}, window=TumblingWindow(60), time=float, lateness=0, keys_in_memory=5)
