"""The state of the moment of the cut: each element once, as it was, whatever is touched when."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.flow.checkpoint.snapshot import SLICE, FullSnapshot, Snapshot


class Source:
    """The states of keys; a name is the key in upper case."""

    def __init__(self, states):
        self.states = dict(states)

    def key_of(self, name):
        return name.lower()

    def peek(self, name):
        return self.states.get(name)


class Taker:
    def __init__(self):
        self.taken, self.dropped = [], False

    def add(self, key, state):
        self.taken.append((key, state))

    def drop(self):
        self.dropped = True


def names(n):
    return [f"K{i}" for i in range(n)]


def states(found):
    return {name: name.encode() for name in found}


def partly(found, clock=lambda: 0.0):
    source, taker = Source(states(found)), Taker()
    return Snapshot(3, found, source, taker, clock), source, taker


def full(memory, disk=(), clock=lambda: 0.0):
    source, taker = Source(states([*memory, *disk])), Taker()
    return FullSnapshot(3, list(memory), iter(disk), source, taker, clock), source, taker


@pytest.mark.parametrize("make", [partly, full])
def test_an_element_is_written_before_it_is_touched_and_once(make):
    snapshot, source, taker = make(names(3))
    snapshot.before(["K1", "K1", "OTHER"])
    source.states["K1"] = b"changed"
    snapshot.before(["K1"])
    assert taker.taken == [("k1", b"K1")]
    assert not snapshot.done
    snapshot.all()
    assert sorted(taker.taken) == [("k0", b"K0"), ("k1", b"K1"), ("k2", b"K2")]
    assert snapshot.done
    snapshot.before(["K0", "NEW"])
    snapshot.all()
    assert len(taker.taken) == 3


def test_of_some_names_one_that_has_no_state_any_more_is_told_of_and_of_all_it_is_not():
    for make, told in ((partly, [("k0", None)]), (full, [])):
        snapshot, source, taker = make(names(1))
        source.states.clear()
        snapshot.all()
        assert taker.taken == told


@pytest.mark.parametrize("make", [partly, full])
def test_it_stops_when_its_time_is_over_and_goes_on_where_it_was(make):
    ticks = count()
    snapshot, _, taker = make(names(3 * SLICE), clock=lambda: float(next(ticks)))
    for written in (SLICE, 2 * SLICE):
        assert snapshot.advance(1.0)  # one look, and time is over
        assert len(taker.taken) == written
    while snapshot.advance(1.0):
        pass
    assert [key for key, _ in taker.taken] == [name.lower() for name in names(3 * SLICE)]
    assert snapshot.done


@pytest.mark.parametrize("make", [partly, full])
def test_one_that_is_given_up_writes_nothing_more(make):
    snapshot, _, taker = make(names(3))
    snapshot.drop()
    assert snapshot.done
    assert taker.dropped
    snapshot.before(["K0"])
    snapshot.all()
    assert not snapshot.advance(1.0)
    assert not taker.taken


def test_nothing_at_all_is_done_at_once():
    assert partly([])[0].done
    snapshot, _, taker = full([])
    assert not snapshot.advance(1.0)
    assert snapshot.done
    assert not taker.taken


def test_what_is_on_a_disk_comes_behind_what_is_in_memory_and_what_was_touched_is_not_written_again():
    snapshot, source, taker = full(["K0"], ["K1", "K2", "K0"])
    snapshot.before(["K2"])
    source.states["K2"] = b"changed"
    snapshot.all()
    assert taker.taken == [("k2", b"K2"), ("k0", b"K0"), ("k1", b"K1")]


def test_what_was_on_a_disk_and_is_touched_behind_its_writing_is_written_once_more_as_it_was():
    clock = count()
    found = names(2 * SLICE)
    snapshot, source, taker = full([], found, clock=lambda: float(next(clock)))
    snapshot.advance(0.5)
    assert len(taker.taken) == SLICE
    snapshot.before(["K0"])
    source.states["K0"] = b"changed"
    assert taker.taken[-1] == ("k0", b"K0")
    snapshot.all()
    assert dict(taker.taken) == {name.lower(): name.encode() for name in found}


@given(st.lists(st.one_of(st.integers(0, 9), st.just("on")), max_size=30), st.booleans())
def test_whatever_is_touched_when_all_are_of_one_moment(steps, whole):
    found = names(10)
    snapshot, source, taker = full(found[:5], found[5:]) if whole else partly(found)
    for step in steps:
        if step == "on":
            snapshot.advance(0.0)
        else:
            snapshot.before([f"K{step}"])
            source.states[f"K{step}"] = b"changed"
    snapshot.all()
    assert dict(taker.taken) == {name.lower(): name.encode() for name in found}
    assert whole or len(taker.taken) == 10
