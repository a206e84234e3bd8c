"""The state of a key with its timers."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import FrameError
from esault.payload.codec import Codec
from esault.payload.timed_state import EVENT, PROCESSING, with_timers, without_timers

codec = Codec()
timers = st.lists(
    st.tuples(
        st.text(max_size=5),
        st.floats(allow_nan=False) | st.integers(-(2**60), 2**60),
        st.sampled_from([EVENT, PROCESSING]),
    ),
    max_size=4,
).map(tuple)


@given(st.binary(max_size=30), timers)
def test_both_come_back(state, timers):
    if state[:2] == b"\xc1T":
        return
    assert without_timers(with_timers(state, timers, codec), codec) == (state, timers)


@given(st.integers() | st.text() | st.lists(st.none()))
def test_state_without_timers_is_as_it_was(value):
    for state in (b"", codec.pack(value), pickle.dumps(value)):
        assert with_timers(state, (), codec) == state
        assert without_timers(state, codec) == (state, ())


@pytest.mark.parametrize(
    "said", [7, (), ((1, 2.0, EVENT),), (("a", "b", EVENT),), (("a", 1.0, "sun"),), (("a", 1.0),), [1], ((),)]
)
def test_what_are_no_timers_is_refused(said):
    packed = codec.pack(said)
    data = b"\xc1T\x01" + len(packed).to_bytes(4, "big") + packed
    if said == ():
        assert without_timers(data, codec) == (b"", ())
        return
    with pytest.raises(FrameError):
        without_timers(data, codec)


def test_a_later_form_is_refused_by_name():
    with pytest.raises(FrameError, match="form that this version does not know"):
        without_timers(b"\xc1T\x02rest", codec)


def test_each_cut_off_beginning_is_a_frame_error():
    head = len(with_timers(b"", (("name", 1.5, EVENT),), codec))
    data = with_timers(b"state", (("name", 1.5, EVENT),), codec)
    for end in range(2, head):
        with pytest.raises(FrameError):
            without_timers(data[:end], codec)
