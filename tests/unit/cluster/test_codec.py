"""Control messages as bytes: types are kept, and bytes that are none do nothing but raise FrameError."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.cluster.codec import MAX_DEPTH, pack, unpack
from esault.errors import FrameError
from esault.messages.control import SendAgain, SentAgain

hashable = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3).map(tuple), st.frozensets(inner, max_size=3)),
    max_leaves=6,
)
values = st.recursive(
    hashable,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(hashable, inner, max_size=3),
        st.sets(hashable, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
    ),
    max_leaves=12,
)


def same(a, b):
    if type(a) is not type(b) or a != b:
        return False
    if isinstance(a, (list, tuple)):
        return all(map(same, a, b))
    return not isinstance(a, dict) or all(same(a[key], b[key]) for key in a)


@given(values)
def test_values_come_back_with_their_types(value):
    assert same(unpack(pack(value)), value)


def test_a_message_comes_back_as_its_class():
    message = SentAgain(3, 1 << 80, (("a", "why"),))
    found = unpack(pack([message, Path("/tmp/ü"), datetime(2026, 1, 2, tzinfo=timezone.utc)]))
    assert found == [message, Path("/tmp/ü"), datetime(2026, 1, 2, tzinfo=timezone.utc)]
    assert type(found[0]) is SentAgain and type(found[0].refused) is tuple


def test_numbers_of_numpy_become_plain_ones():
    found = unpack(pack([np.float64(1.5), np.int64(3)]))
    assert found == [1.5, 3] and type(found[0]) is float


@pytest.mark.parametrize("thing", [object(), "\ud800", Path("a\udcff"), lambda: 0, (x for x in ())])
def test_what_cannot_travel_is_a_frame_error(thing):
    with pytest.raises(FrameError):
        pack([thing])


def test_a_list_that_holds_itself_is_a_frame_error():
    thing: list = []
    thing.append(thing)
    with pytest.raises(FrameError):
        pack(thing)


def test_depth_is_bounded_at_both_ends():
    fits: tuple = ()
    for _ in range(MAX_DEPTH - 1):
        fits = (fits,)
    data = pack(fits)
    assert unpack(data) == fits
    with pytest.raises(FrameError, match="within one another"):
        pack((((fits,),),))
    for _ in range(3):
        data = msgpack.packb(msgpack.ExtType(2, msgpack.packb([msgpack.ExtType(2, data)])))
    with pytest.raises(FrameError):
        unpack(data)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_a_frame_error(data):
    for each in (data, msgpack.packb(msgpack.ExtType(1, data)), msgpack.packb(msgpack.ExtType(7, data))):
        try:
            unpack(each)
        except FrameError:
            pass


@pytest.mark.parametrize("body", [["Popen", "ls"], ["SentAgain"], ["SentAgain", 1, 2, 3, 4, 5], [], [1], 7, {}])
def test_a_message_of_another_form_is_refused(body):
    with pytest.raises(FrameError):
        unpack(msgpack.packb(msgpack.ExtType(1, msgpack.packb(body))))


def test_every_prefix_of_a_message_is_refused():
    data = pack(SendAgain(1, (("id", "place", b"packed"),)))
    for end in range(len(data)):
        with pytest.raises(FrameError):
            unpack(data[:end])
