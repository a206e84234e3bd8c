"""The codec against bytes that it did not make: a value or a FrameError, in little memory, and nothing else."""

from __future__ import annotations

import contextlib
import random
import struct
import tracemalloc
from datetime import datetime, timezone
from decimal import Decimal

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from esault.errors import FrameError
from esault.payload.codec import Codec

codec = Codec()

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    st.binary(max_size=10),
    st.sampled_from([datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=timezone.utc), Decimal("1.5"), {1, 2}]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text("ab", max_size=3), inner, max_size=3)),
    max_leaves=20,
)


def harmless(data: bytes) -> None:
    with contextlib.suppress(FrameError):
        codec.unpack(data)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200))
@example(b"")
@example(b"\xc1")
@example(b"\x81\x81\x01\x02\x03")  # a dict as a key of a dict
@example(b"\x81\xc7\x04\x54\x93\x01\x02\x03\x04")  # a set as a key of a dict
def test_random_bytes_give_a_value_or_a_frame_error(data):
    harmless(data)


@settings(max_examples=300, deadline=None)
@given(values, st.data())
def test_damaged_bytes_give_a_value_or_a_frame_error(value, data):
    packed = bytearray(codec.pack(value))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    harmless(bytes(packed))


@given(values, st.data())
def test_cut_off_or_doubled_bytes_are_a_frame_error(value, data):
    packed = codec.pack(value)
    for broken in (packed[: data.draw(st.integers(0, len(packed) - 1))], packed + b"\xc0", packed + packed):
        with pytest.raises(FrameError, match="^bytes that are no packed value: "):
            codec.unpack(broken)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 127), st.binary(max_size=40))
def test_extension_types_with_anything_inside_give_a_value_or_a_frame_error(code, data):
    harmless(msgpack.packb(msgpack.ExtType(code, data)))


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (81, b"no number"),
        (81, b"1E+99999999999999999999999999"),
        (81, b"\xff"),
        (82, b""),
        (82, struct.pack(">HBBBBBIB", 2020, 13, 1, 0, 0, 0, 0, 0)),
        (82, struct.pack(">HBBBBBIBq", 2020, 1, 1, 0, 0, 0, 0, 0, 2**62)),
        (82, struct.pack(">HBBBBBIB", 2020, 1, 1, 0, 0, 0, 0, 9)),
        (83, struct.pack(">HBB", 0, 1, 1)),
        (83, b"12345"),
        (84, b"\x01"),
        (84, b"\x91\x80"),  # a dict in a set
        (85, b"\xdd\xff\xff\xff\xff"),
    ],
)
def test_an_extension_of_ours_with_something_else_inside_is_a_frame_error(code, data):
    with pytest.raises(FrameError, match="bytes that are no packed value"):
        codec.unpack(msgpack.packb(msgpack.ExtType(code, data)))


@pytest.mark.parametrize("text", ["a str", 5, None])
def test_what_is_no_bytes_is_refused(text):
    with pytest.raises((FrameError, TypeError)):
        codec.unpack(text)


@pytest.mark.parametrize("size", [4_000, 100_000, 1_000_000])
@pytest.mark.parametrize("header", [b"\xdd", b"\xdc", b"\xdf", b"\xde"], ids=["array32", "array16", "map32", "map16"])
def test_small_input_cannot_make_the_unpacker_take_much_memory(header, size):
    claim = header + size.to_bytes(4, "big") if header in b"\xdd\xdf" else header + min(size, 65535).to_bytes(2, "big")
    if header in b"\xdf\xde":
        claim += b"\x01"  # a key; its value is the next map
    hostile = (claim * 1000).ljust(size, b"\x00")[:size]
    for data in (hostile, msgpack.packb(msgpack.ExtType(84, hostile))):
        tracemalloc.start()
        try:
            with pytest.raises(FrameError):
                codec.unpack(data)
            assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
        finally:
            tracemalloc.stop()


def test_bytes_views_and_buffers_are_unpacked_alike():
    packed = codec.pack(list(range(10_000)))
    assert codec.unpack(bytearray(packed)) == codec.unpack(memoryview(packed)) == tuple(range(10_000))


def test_a_million_random_bytes_do_no_harm():
    draw = random.Random(7)
    marks = bytes([0xDD, 0xDC, 0xDF, 0xC7, 0xC8, 84, 85, 80, 81, 82, 0x91, 0x81, 0x92, 1, 0, 4])
    for _ in range(20_000):
        size = draw.randrange(1, 100)
        harmless(bytes(draw.choice(marks) if draw.random() < 0.7 else draw.randrange(256) for _ in range(size)))


@pytest.mark.parametrize("name", ["no_such_module", "sys"])
def test_a_value_whose_class_is_gone_says_so(name):
    with pytest.raises(FrameError, match="^a value of a class that is not to be found here: .*no_such|Gone"):
        codec.unpack(codec.pack_value(Gone())[:1] + f"c{name}\nGone\n.".encode())


class Gone:
    """Travels as a pickle does."""
