"""The codec: what is packed comes back, and what cannot travel is refused."""

from __future__ import annotations

import enum
import math
from collections import Counter, OrderedDict, defaultdict, namedtuple
from datetime import datetime, timedelta, timezone, tzinfo
from decimal import Decimal

import msgpack
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault.errors import FrameError, PayloadError
from esault.payload import codec as codec_module
from esault.payload.codec import MAX_BYTES, Codec

codec = Codec()

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
offsets = st.timedeltas(
    -timedelta(hours=24) + timedelta(microseconds=1), timedelta(hours=24) - timedelta(microseconds=1)
)
moments = st.one_of(
    st.datetimes(),
    st.builds(datetime.replace, st.datetimes(), fold=st.integers(0, 1)),
    st.builds(lambda moment, offset: moment.replace(tzinfo=timezone(offset)), st.datetimes(), offsets),
)
hashable = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**200), 2**200),
    st.floats(allow_nan=False),
    text,
    st.binary(max_size=10),
    moments,
    st.dates(),
    st.decimals(allow_nan=False),
)
keys = st.recursive(
    hashable,
    lambda inner: st.one_of(st.lists(inner, max_size=3).map(tuple), st.frozensets(inner, max_size=3)),
    max_leaves=6,
)
values = st.recursive(
    st.one_of(hashable, st.floats(), st.decimals(), st.sets(keys, max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple), st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=20,
)


def shape(value: object) -> object:
    """The value as it should arrive, so that what Python takes for equal differs: 1 and True, 0.0 and -0.0."""
    if isinstance(value, (list, tuple)):
        return ("tuple", [shape(v) for v in value])
    if isinstance(value, dict):
        return ("dict", [(shape(k), shape(v)) for k, v in value.items()])
    if isinstance(value, (set, frozenset)):
        return (type(value).__name__, sorted((shape(v) for v in value), key=repr))
    if isinstance(value, datetime):
        return ("datetime", value.replace(tzinfo=None), value.fold, value.utcoffset())
    return (type(value).__name__, repr(value))


def travelled(value):
    return codec.unpack(codec.pack(value))


@settings(max_examples=300, deadline=None)
@given(values)
def test_what_can_travel_comes_back_with_sequences_as_tuples(value):
    assert shape(travelled(value)) == shape(value)


@settings(deadline=None)
@given(values)
def test_what_came_back_travels_the_same_way_again(value):
    once = travelled(value)
    assert shape(travelled(once)) == shape(once)


def test_sequences_arrive_as_tuples_at_any_depth():
    assert travelled([1, [2, {"a": [3]}]]) == (1, (2, {"a": (3,)}))


def test_sets_stay_sets_and_frozensets_stay_frozen():
    back = travelled({"plain": {1, "a"}, "frozen": frozenset([2]), "nested": {frozenset([frozenset()])}})
    assert back == {"plain": {1, "a"}, "frozen": frozenset([2]), "nested": {frozenset([frozenset()])}}
    assert [type(v) for v in back.values()] == [set, frozenset, set]


@pytest.mark.parametrize(
    "edge", [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 2**9999, -(2**9999), 255 << 64], ids=hex
)
def test_ints_of_any_size_travel_as_keys_and_values(edge):
    assert travelled({edge: [edge]}) == {edge: (edge,)}


def test_an_aware_datetime_keeps_its_offset_and_a_naive_one_stays_naive():
    class Rome(tzinfo):
        def utcoffset(self, moment):
            return timedelta(hours=2)

        def dst(self, moment):
            return timedelta(hours=1)

    back = travelled(
        [datetime(2026, 7, 1, 12, tzinfo=Rome()), datetime(2026, 7, 1, 12, tzinfo=timezone.utc), datetime(1, 1, 1)]
    )
    assert back[0].isoformat() == "2026-07-01T12:00:00+02:00"
    assert back[0].tzinfo == timezone(timedelta(hours=2))
    assert back[1].tzinfo is timezone.utc
    assert back[2] == datetime(1, 1, 1)
    assert back[2].tzinfo is None


def test_nan_and_signalling_decimals_travel():
    nan, decimal = travelled([math.nan, Decimal("-sNaN123")])
    assert math.isnan(nan)
    assert str(decimal) == "-sNaN123"


class Level(enum.IntEnum):
    LOW = 1
    HUGE = 2**70


class Colour(str, enum.Enum):
    RED = "red"


Point = namedtuple("Point", "x y")


class Money(Decimal):
    pass


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        (Point(1, 2), (1, 2)),
        (Level.LOW, 1),
        (Level.HUGE, 2**70),
        (Colour.RED, "red"),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (defaultdict(list, a=[1]), {"a": (1,)}),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
        (numpy.float64(1.5), 1.5),
        (numpy.str_("a"), "a"),
        (Money("1.50"), Decimal("1.50")),
    ],
)
def test_a_subclass_arrives_as_its_base(value, arrives):
    back = travelled([value])[0]
    assert back == arrives
    assert type(back) is type(arrives)
    assert list(back) == list(arrives) if isinstance(arrives, dict) else True


def test_extension_types_of_msgpack_and_of_others_arrive_as_they_are():
    assert travelled([msgpack.Timestamp(5, 7), msgpack.ExtType(9, b"x")]) == (
        msgpack.Timestamp(5, 7),
        msgpack.ExtType(9, b"x"),
    )


@pytest.mark.parametrize("value", [numpy.int64(1), [0, {"a": 1j}], {1: {(object(),)}}, {numpy.int32(1): 1}])
def test_a_message_of_what_is_not_ours_is_refused(value):
    with pytest.raises(PayloadError, match="the value cannot travel: |is not known"):
        codec.pack(value)
    assert travelled("after a refusal the codec works on") == "after a refusal the codec works on"


def test_what_contains_itself_is_refused():
    loop: list = [1]
    loop.append({"again": loop})
    with pytest.raises(PayloadError, match="the value cannot travel: recursion limit exceeded"):
        codec.pack(loop)


def nested(make, depth, leaf):
    for _ in range(depth):
        leaf = make(leaf)
    return leaf


@pytest.mark.parametrize("leaf", [1, (), {}, "a", 2**70, frozenset(), None], ids=repr)
@pytest.mark.parametrize("make", [lambda x: [x], lambda x: {1: x}], ids=["list", "dict"])
def test_what_can_be_packed_can_be_unpacked_at_every_depth(make, leaf):
    limit = 0
    for depth in (1, 100, 500, *range(1015, 1035)):
        value = nested(make, depth, leaf)
        try:
            packed = codec.pack(value)
        except PayloadError:
            break
        codec.unpack(packed)
        limit = depth
    assert 500 <= limit < 1034


def test_sets_nest_8_deep_both_ways_and_no_deeper():
    value = nested(lambda x: frozenset([x]), 7, frozenset([1]))
    assert travelled(value) == value
    with pytest.raises(PayloadError, match="sets in sets, too deep"):
        codec.pack(frozenset([value]))
    # Where tuples lie between the sets, no level may take the C stack to its end.
    deep = nested(lambda x: frozenset([nested(lambda y: (y,), 400, x)]), 7, frozenset([1]))
    assert codec.pack(codec.unpack(codec.pack(deep))) == codec.pack(deep)
    with pytest.raises(PayloadError, match="sets in sets, too deep"):
        codec.pack(nested(lambda x: frozenset([nested(lambda y: (y,), 400, x)]), 20, frozenset([1])))
    packed = msgpack.packb(())
    for _ in range(2000):
        packed = msgpack.packb(msgpack.ExtType(85, b"\x91" + packed))
    with pytest.raises(FrameError, match="sets in sets, too deep"):
        codec.unpack(packed)
    assert travelled({frozenset([1])}) == {frozenset([1])}


def test_a_line_of_10_mb_travels():
    line = "größe " * 1_500_000
    assert travelled([line]) == (line,)


def test_a_value_beyond_the_limit_is_refused_on_both_sides(monkeypatch):
    assert MAX_BYTES == 256 * 2**20
    monkeypatch.setattr(codec_module, "MAX_BYTES", 3 * 2**20)
    with pytest.raises(
        PayloadError, match="the value takes 4 MiB, more than the 3 MiB that can travel at once; split it"
    ):
        codec.pack(bytes(4 * 2**20))
    with pytest.raises(FrameError, match="4194304 bytes are more than the 3145728 that can be one frame"):
        codec.unpack(bytes(4 * 2**20))
