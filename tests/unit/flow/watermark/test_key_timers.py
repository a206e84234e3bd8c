"""Timers by key and name: what is due next, whatever is set, replaced, cancelled and moved before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import FrameError
from esault.flow.watermark.key_timers import KeyTimers
from esault.payload.codec import Codec
from esault.payload.timed_state import EVENT, PROCESSING, with_timers, without_timers
from esault.routing.ring import canonical

CALLS = st.tuples(
    st.sampled_from(["set", "set", "set", "cancel", "fire", "move"]),
    st.sampled_from(["a", canonical(1), canonical(True)]),
    st.sampled_from(["x", "y"]),
    st.integers(0, 9),
    st.sampled_from([EVENT, PROCESSING]),
)


@given(st.lists(CALLS, max_size=400))
def test_the_first_one_is_that_of_the_least_time_and_of_those_the_one_that_was_set_first(calls):
    timers, plain = KeyTimers(), {}
    for number, (what, key, name, at, by) in enumerate(calls):
        if what == "set":
            timers.set(key, name, at, by)
            plain[key, name] = (at, number, by)
        elif what == "cancel":
            assert timers.cancel(key, name) == (plain.pop((key, name), None) is not None)
        elif what == "move":
            codec = Codec()
            said = with_timers(b"state", timers.pop(key), codec)
            state, moved = without_timers(said, codec)
            assert state == b"state"
            timers.put(key, moved)
            mine = sorted((of[1], name) for (owner, name), of in plain.items() if owner == key)
            for later, (_, name) in enumerate(mine):
                at, _, by = plain[key, name]
                plain[key, name] = (at, number + later / 10, by)
        else:
            due = min(((at, n, k, name) for (k, name), (at, n, b) in plain.items() if b == by), default=None, key=first)
            found = timers.first(by)
            assert (found is None) == (due is None)
            if found is not None:
                assert (found[0], found[2], found[3]) == (due[0], due[2], due[3])
                timers.cancel(found[2], found[3])
                del plain[due[2], due[3]]
        assert len(timers) == len(plain)


def first(entry):
    return entry[:2]


def test_a_timer_that_is_set_again_and_again_takes_the_room_of_one():
    timers = KeyTimers()
    for at in range(10_000):
        timers.set("a", "quiet", at, EVENT)
    assert len(timers) == 1
    assert len(timers._heaps[EVENT]) < 100
    assert timers.first(EVENT)[0] == 9999


def test_state_without_timers_is_as_it_always_was():
    assert with_timers(b"\x81", (), Codec()) == b"\x81"
    assert without_timers(b"\x81", Codec()) == (b"\x81", ())


def test_a_form_of_a_later_version_is_refused():
    said = bytearray(with_timers(b"\x81", (("a", 1.0, EVENT),), Codec()))
    said[2] = 9
    with pytest.raises(FrameError, match="does not know"):
        without_timers(bytes(said), Codec())
