"""Arrays on the wire: what is sent comes back, of the same type; other bytes are an error and nothing else."""

from __future__ import annotations

import builtins
import contextlib
import random

import msgpack
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from esault.errors import FrameError, PayloadError
from esault.flow.channel.frame import Batch, batch_of
from esault.payload.codec import Codec
from esault.payload.column import checked, plain
from esault.payload.column_wire import LibraryMissing, wired

codec = Codec()

ORDERS = st.sampled_from("<>=")
DTYPES = st.one_of(
    st.just(np.dtype("?")),
    st.builds(
        lambda order, kind: np.dtype(order + kind),
        ORDERS,
        st.sampled_from(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]),
    ),
    st.builds(lambda order, kind: np.dtype(order + kind), ORDERS, st.sampled_from(["f2", "f4", "f8"])),
    st.builds(lambda order, size: np.dtype(f"{order}U{size}"), ORDERS, st.integers(1, 9)),
    st.builds(lambda size: np.dtype(f"S{size}"), st.integers(1, 9)),
)
MOMENTS = st.builds(
    lambda order, unit, days: np.array(days, "M8[D]").astype(f"{order}M8[{unit}]"),
    ORDERS,
    st.sampled_from(["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "10us"]),
    st.lists(st.integers(-700_000, 2_900_000), max_size=9),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


def arrays(dtype):
    if dtype.kind == "U":
        return st.lists(TEXTS, max_size=20).map(lambda items: np.array(items, dtype))
    return hnp.arrays(dtype, st.integers(0, 20))


NUMPY = st.one_of(DTYPES.flatmap(arrays), MOMENTS)

LEAVES = [
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.bool_(), st.booleans()),
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS),
    (pa.binary(), st.binary(max_size=9)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes()),
    (pa.decimal128(20, 2), st.decimals(-(10**9), 10**9, places=2)),
    (pa.null(), st.none()),
]
ARROW = st.one_of(
    *(st.builds(lambda items, t=t: pa.array(items, t), st.lists(st.none() | e, max_size=12)) for t, e in LEAVES),
    st.builds(
        lambda items: pa.array(items, pa.list_(pa.int64())),
        st.lists(st.none() | st.lists(st.integers(0, 9)), max_size=9),
    ),
    st.builds(
        lambda items: pa.array(items, pa.string()).dictionary_encode(),
        st.lists(st.none() | st.sampled_from("abc"), max_size=12),
    ),
    st.builds(
        lambda items: pa.array(items, pa.struct([("a", pa.int64()), ("b", pa.string())])),
        st.lists(st.fixed_dictionaries({"a": st.integers(0, 9), "b": st.none() | st.sampled_from("xy")}), max_size=9),
    ),
)


def travelled(column):
    return codec.unpack(codec.pack(wired(column)))


@settings(max_examples=300, deadline=None)
@given(NUMPY, st.sampled_from([1, 2, -1]))
def test_a_numpy_array_comes_back_with_its_type_order_and_content(array, step):
    array = checked(array[::step], "values")
    back = travelled(array)
    assert back.dtype == array.dtype
    assert back.dtype.byteorder == array.dtype.byteorder or back.dtype.isnative == array.dtype.isnative
    assert back.tobytes() == array.tobytes()
    assert not back.flags.writeable
    assert back.flags.aligned
    assert len(plain(back)) == len(array)


@settings(max_examples=300, deadline=None)
@given(ARROW, st.integers(0, 3), st.integers(0, 12))
def test_an_arrow_array_comes_back_with_its_type_and_content_also_a_slice_of_one(array, start, length):
    array = checked(array.slice(min(start, len(array)), length), "values")
    back = travelled(array)
    assert back.type == array.type
    assert back.equals(array)
    assert plain(back) == plain(array)


def test_a_record_batch_comes_back_with_its_names_and_types():
    batch = pa.record_batch({"a": [1, 2, 3], "b": ["x", None, "z"]})
    assert travelled(batch).equals(batch)
    assert travelled(batch[1:2]).to_pylist() == [{"a": 2, "b": None}]
    assert travelled(batch[:0]).num_rows == 0


def test_a_batch_of_columns_of_any_kind_passes_the_frame_and_two_lengths_do_not():
    def raw(keys, values):
        return codec.unpack(codec.pack(Batch((1, 2, 0), 5, 0, wired(keys), wired(values), 1.0, None)))

    for keys, values in [
        ((1, 2), np.arange(2)),
        (np.arange(2), (1, 2)),
        (pa.array([1, 2]), pa.record_batch({"a": [1, 2]})),
    ]:
        assert len(batch_of(raw(keys, values)).values) == 2
    for keys, values in [((1,), np.arange(2)), (np.arange(3), pa.array([1])), (pa.array(["a"]), ())]:
        with pytest.raises(FrameError, match="one length"):
            batch_of(raw(keys, values))
    for keys, values in [({}, np.arange(0)), (np.arange(1), "a"), (b"ab", (1, 2)), ((1,), {1: 1})]:
        with pytest.raises(FrameError, match="sequences or arrays"):
            batch_of((*((1, 2, 0), 5, 0), keys, values, 1.0, None))


# what is not ours ---------------------------------------------------------------------------------


def head(name):
    text = bytes([len(name)]) + name
    return text + bytes(-len(text) % 16)


def harmless(code, data):
    """A value or a FrameError; and of a value rows can be made, or it is said why not."""
    with contextlib.suppress(FrameError, PayloadError):
        plain(codec.unpack(msgpack.packb(msgpack.ExtType(code, data))))


@settings(max_examples=500, deadline=None)
@given(st.sampled_from([86, 87, 88]), st.binary(max_size=200))
@example(86, b"")
@example(87, b"")
@example(86, b"\xff")
def test_random_bytes_give_a_column_or_a_frame_error(code, data):
    harmless(code, data)


@settings(max_examples=500, deadline=None)
@given(st.one_of(NUMPY, ARROW), st.data())
def test_damaged_arrays_give_a_column_or_a_frame_error(array, data):
    ext = wired(checked(array, "values"))
    damaged = bytearray(ext.data)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    harmless(ext.code, bytes(damaged))


@settings(max_examples=200, deadline=None)
@given(st.one_of(NUMPY, ARROW), st.data())
def test_cut_off_arrays_give_a_column_or_a_frame_error(array, data):
    ext = wired(checked(array, "values"))
    harmless(ext.code, ext.data[: data.draw(st.integers(0, len(ext.data) - 1))])


@pytest.mark.parametrize(
    "name",
    [
        b"|O",
        b"O",
        b"|V8",
        b"<c16",
        b"<m8[s]",
        b"<M8[ns]",
        b"<M8",
        b"<f16",
        b"<U0",
        b"|S0",
        b"T",
        b"i4,i4",
        b"<i3",
        b"(2,)<i8",
        b"\xff\xfe",
    ],
)
def test_other_dtypes_are_a_frame_error(name):
    with pytest.raises(FrameError):
        codec.unpack(msgpack.packb(msgpack.ExtType(86, head(name) + bytes(64))))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (b"<i8", bytes(7)),
        (b"|b1", b"\x02"),
        (b"<U1", b"\xff\xff\xff\xff"),
        (b"<U1", b"\x00\xdc\x00\x00"),
        (b"<M8[D]", b"\xff" * 7 + b"\x7f"),
    ],
)
def test_items_that_are_none_of_their_dtype_are_a_frame_error(name, data):
    with pytest.raises(FrameError):
        codec.unpack(msgpack.packb(msgpack.ExtType(86, head(name) + data)))


def ipc(*columns, batches=1):
    batch = pa.record_batch(list(columns), names=[f"c{i}" for i in range(len(columns))])
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        for _ in range(batches):
            writer.write_batch(batch)
    return stream.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "data",
    [
        ipc(pa.array([1]), pa.array([2])),
        ipc(),
        ipc(pa.array([1]), batches=0),
        ipc(pa.array([1], pa.time64("us"))),
        ipc(pa.array([1], pa.timestamp("ns"))),
        ipc(pa.array([1], pa.duration("s"))),
    ],
    ids=["two columns", "no column", "no batch", "time", "nanoseconds", "duration"],
)
def test_a_stream_of_something_else_is_no_array(data):
    with pytest.raises(FrameError):
        codec.unpack(msgpack.packb(msgpack.ExtType(87, data)))


def test_many_damaged_streams_do_no_harm():
    draw = random.Random(5)
    streams = [
        ipc(pa.array(["a", "bc", None, "d" * 50])),
        ipc(pa.array([[1, 2], [3]])),
        ipc(pa.array(list("aba")).dictionary_encode()),
        ipc(pa.array([{"a": 1, "b": "x"}])),
    ]
    for _ in range(4_000):
        damaged = bytearray(draw.choice(streams))
        for _ in range(draw.randint(1, 6)):
            damaged[draw.randrange(len(damaged))] = draw.choice((0, 1, 255, 128, draw.randrange(256)))
        harmless(draw.choice((87, 88)), bytes(damaged))


@pytest.mark.parametrize(("array", "library"), [(np.arange(3), "numpy"), (pa.array([1]), "pyarrow")])
def test_a_process_without_the_library_says_what_to_install(monkeypatch, array, library):
    packed = codec.pack(wired(array))
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == library:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        LibraryMissing, match=f"has no {library}; install it there .pip install {library}., or emit lists"
    ):
        codec.unpack(packed)
