"""States on a disk do what a dict does, leave no file, and say where they cannot be written."""

from __future__ import annotations

import sqlite3
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import StateError
from esault.payload.codec import Codec
from esault.routing.ring import canonical
from esault.state import states_on_disk
from esault.state.states_on_disk import StatesOnDisk, folder_of_states

KEYS = [True, 1, False, 0, (True, "a"), (1, "a"), "a", "b", None, b"b", 2**70, ("a", ("b", 3))]
STEP = st.tuples(
    st.sampled_from(["put", "pop", "get", "in", "clear", "discard", "take", "scan", "next"]),
    st.sampled_from(KEYS),
    st.binary(max_size=40),
)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(states_on_disk, "AT_ONCE", 3)


@given(st.lists(STEP, max_size=60))
def test_it_does_what_a_dict_does(steps):
    before, states_on_disk.AT_ONCE = states_on_disk.AT_ONCE, 3
    rows, states_on_disk.SCANNED = states_on_disk.SCANNED, 2
    states, plain = StatesOnDisk(Codec()), {}
    scan, due = iter(()), set()  # what must come of a scan: all that were there when it began and have not left since
    try:
        for what, key, state in steps:
            name = canonical(key)
            if what == "put":
                states.pop(name, None)
                states[name] = plain[name] = state
            elif what == "pop":
                assert states.pop(name, None) == plain.pop(name, None)
            elif what == "discard":
                states.discard(name)
                plain.pop(name, None)
            elif what == "take":
                assert states.take(name) == plain.pop(name, None)
            elif what == "scan":
                assert not due - set(scan)
                scan, due = chain(states.in_memory(), states.on_disk()), set(plain)
            elif what == "next":
                due.discard(next(scan, None))
            elif what == "clear" and state == b"":
                states.clear()
                plain.clear()
            else:
                assert states.get(name) == plain.get(name)
                assert (name in states) == (name in plain)
            due &= {name} ^ due if what in ("put", "pop", "take", "discard") else set(plain)
            assert len(states) == len(plain)
            assert sorted(states, key=repr) == sorted(plain, key=repr)
        assert not due - set(scan)
    finally:
        states.close()
        states_on_disk.AT_ONCE, states_on_disk.SCANNED = before, rows


def test_nothing_is_left_in_the_folder(tmp_path, few):
    states = StatesOnDisk(Codec(), str(tmp_path))
    for i in range(10):
        states[f"k{i}"] = b"x" * 100
    assert list(tmp_path.iterdir()) == []
    assert states.get("k0") == b"x" * 100
    states.close()


def test_what_cannot_be_written_stays_in_memory_until_it_can(tmp_path, few):
    folder = tmp_path / "later"
    states = StatesOnDisk(Codec(), str(folder))
    states["a"] = b"1"
    states["b"] = b"2"
    for name in ("c", "d"):
        with pytest.raises(OSError, match=f"cannot be written in {folder}.*TMPDIR=/folder"):
            states[name] = b"3"
    assert (len(states), states.get("d")) == (4, b"3")
    folder.mkdir()
    states["e"] = b"5"
    assert (states._rows, sorted(states)) == (5, ["a", "b", "c", "d", "e"])


def test_a_full_disk_is_said_and_loses_nothing(few):
    states = StatesOnDisk(Codec())
    for i in range(3):
        states[f"k{i}"] = b"x" * 1000
    states._connection.execute("PRAGMA max_page_count = 4")
    states["a"] = states["b"] = b"y" * 9000
    with pytest.raises(OSError, match="database or disk is full"):
        states["c"] = b"z" * 9000
    assert {name: len(states.get(name)) for name in states} == {
        **{f"k{i}": 1000 for i in range(3)},
        **dict.fromkeys("abc", 9000),
    }


def test_what_cannot_be_read_is_an_error_of_the_state(few):
    states = StatesOnDisk(Codec())
    for i in range(3):
        states[f"k{i}"] = b"x"
    states._connection.close()
    with pytest.raises(StateError, match="cannot be read"):
        states.pop("k0", None)
    with pytest.raises(StateError) as raised:
        states.get("k1")
    assert isinstance(raised.value.__cause__, sqlite3.Error)


def test_the_folder_is_the_users_or_one_on_a_disk(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert folder_of_states() == str(tmp_path)
    monkeypatch.delenv("TMPDIR")
    assert folder_of_states() == "/var/tmp"
    monkeypatch.setattr(states_on_disk, "ON_A_DISK", "/nowhere")
    assert folder_of_states() != "/nowhere"
