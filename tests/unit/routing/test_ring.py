"""The ring: places that never change, keys that never collide by type, and what cannot be a key."""

from __future__ import annotations

import enum
from collections import Counter, namedtuple
from datetime import date
from decimal import Decimal
from zlib import crc32

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import PayloadError
from esault.routing.ring import (
    INT_MAX,
    MAX_KEY_DEPTH,
    NAME,
    RING,
    Canonical,
    canonical,
    check_key,
    encode,
    is_ambiguous,
    position,
)
from esault.routing.table import OutputTable

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = st.one_of(text, st.binary(max_size=12), st.integers(), st.booleans(), st.none(), st.integers(-2, 2))
keys = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)

WORDS = [a + b + c for a in "abcdefghijklmnopqrstuvwxyz" for b in "abcdefghijklmnopqrstuvwxyz" for c in "abc"]


def fmix32(h: int) -> int:
    """The finalizer as MurmurHash3 writes it down."""
    h ^= h >> 16
    h = (h * 0x85EBCA6B) % 2**32
    h ^= h >> 13
    h = (h * 0xC2B2AE35) % 2**32
    return h ^ h >> 16


def mix32(a: int) -> int:
    """The 32-bit mix of the paper's public code, on signed 32-bit integers with an arithmetic right shift."""
    a = _signed(a + ~(a << 15))
    a = _signed(a ^ (a >> 10))
    a = _signed(a + (a << 3))
    a = _signed(a ^ (a >> 6))
    a = _signed(a + ~(a << 11))
    return _signed(a ^ (a >> 16))


def java_string_hash(text: str) -> int:
    """`String.hashCode` of the JVM: over UTF-16 code units, signed 32 bits."""
    h = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        h = 31 * h + (units[i] << 8 | units[i + 1]) & 0xFFFFFFFF
    return _signed(h)


def java_position(key: str) -> int:
    """The place that the paper's public code gives a string key."""
    return mix32(java_string_hash(key)) & INT_MAX


def _signed(x: int) -> int:
    x &= 0xFFFFFFFF
    return x - (1 << 32) if x >> 31 else x


def test_the_finalizer_is_murmurs():
    assert [fmix32(h) for h in (0, 1, 0xFFFFFFFF)] == [0, 0x514E28B7, 0x81F16F39]


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("the", b"sthe"),
        ("", b"s"),
        ("größe", b"sgr\xc3\xb6\xc3\x9fe"),
        (b"the", b"bthe"),
        (0, b"i\x00"),
        (1, b"i\x01"),
        (-1, b"i\xff"),
        (127, b"i\x7f"),
        (128, b"i\x80\x00"),
        (-128, b"i\x80\xff"),
        (256, b"i\x00\x01"),
        (True, b"t"),
        (False, b"f"),
        (None, b"n"),
        ((), b"("),
        (("a",), b"(" + b"\x02" + bytes(7) + b"sa"),
        (("a", 1), b"(" + b"\x02" + bytes(7) + b"sa" + b"\x02" + bytes(7) + b"i\x01"),
    ],
)
def test_a_key_is_written_with_its_type_and_hashed_by_crc_and_finalizer(key, written):
    assert encode(key) == written
    assert position(key) == fmix32(crc32(written)) & INT_MAX


def test_places_never_change_since_state_is_stored_by_them():
    assert NAME == "crc32-fmix32/1"
    golden = [
        ("", 1826626647),
        ("the", 1049863461),
        ("größe", 1316386889),
        (b"", 1361590076),
        (0, 509252457),
        (1, 1106763266),
        (-1, 2032848304),
        (2**100, 800249305),
        (True, 560745302),
        (None, 830372875),
        (("a", 1), 2009033199),
        ((("a",), (b"b", None)), 516886520),
    ]
    assert [(key, position(key)) for key, _ in golden] == golden


def test_one_true_text_bytes_and_tuples_of_them_are_different_keys():
    alike = [
        1,
        True,
        "1",
        b"1",
        (1,),
        (True,),
        ("1",),
        (b"1",),
        ((1,),),
        "True",
        None,
        "None",
        "n",
        (),
        "",
        b"",
        0,
        False,
    ]
    assert len({encode(key) for key in alike}) == len(alike)
    assert len({position(key) for key in alike}) == len(alike)


@given(keys, keys)
def test_only_equal_keys_of_equal_types_are_written_alike(a, b):
    assert (encode(a) == encode(b)) == (repr(a) == repr(b))


@given(keys)
def test_every_key_has_a_place_and_passes_the_check(key):
    check_key(key)
    place = position(key)
    assert type(place) is int
    assert 0 <= place <= INT_MAX == RING - 1


@given(st.lists(st.lists(text, max_size=3), max_size=3), st.lists(st.lists(text, max_size=3), max_size=3))
def test_nested_tuples_of_the_same_texts_are_written_differently(a, b):
    a, b = (tuple(map(tuple, x)) for x in (a, b))
    assert (encode(a) == encode(b)) == (a == b)


def test_an_int_of_any_size_is_a_key():
    assert position(10**6000) != position(10**6000 + 1)
    assert position(-(10**6000)) != position(10**6000)


@pytest.mark.parametrize(
    "make", [int, str, lambda i: f"user-{i:08}", lambda i: (i // 100, i % 100), lambda i: i * 4096]
)
def test_keys_that_differ_little_are_spread_evenly(make):
    cells = Counter(position(make(i)) * 16 // RING for i in range(16_000))
    # 1000 each with a deviation of 31: five of them.
    assert all(845 < cells[i] < 1155 for i in range(16)), cells


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Name(str):
    __slots__ = ()


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (1.5, r"^float cannot be a key: a key is str, .* no subclass; use str\(key\), or an int such as"),
        (2.0, "^float cannot be a key"),
        (numpy.int64(3), r"^numpy\.int64 cannot be a key.*; use key\.item\(\)$"),
        (numpy.str_("a"), r"^numpy\.str_ cannot be a key.*; use key\.item\(\)$"),
        (numpy.float64(2), r"^numpy\.float64 cannot be a key.*; use key\.item\(\)$"),
        (Level.LOW, r"^Level cannot be a key.*; use key\.value$"),
        (Colour.RED, r"^Colour cannot be a key.*; use key\.value$"),
        (Name("a"), r"^Name cannot be a key.*; use str\(key\)$"),
        (Point(1, 2), r"^Point cannot be a key.*; use tuple\(key\)$"),
        ([1], r"^list cannot be a key.*; use tuple\(key\)$"),
        ({1}, r"^set cannot be a key.*; use tuple\(sorted\(key\)\)$"),
        ({"a": 1}, r"^dict cannot be a key.*; use tuple\(sorted\(key\.items\(\)\)\)$"),
        (bytearray(b"a"), r"^bytearray cannot be a key.*; use bytes\(key\)$"),
        (date(2020, 1, 1), r"^datetime\.date cannot be a key.*; use key\.isoformat\(\)$"),
        (Decimal(1), r"^decimal\.Decimal cannot be a key.*; use str\(key\)$"),
        (("a", (1, 2.0)), r"^float at key\[1\]\[1\] cannot be a key.*; use str\(key\[1\]\[1\]\)"),
        (object(), r"^object cannot be a key"),
        ("\udc80", r"^key '\\udc80' holds a lone surrogate.*key\.encode\(\"utf-8\", \"surrogateescape\"\)$"),
        (("a", "\udc80"), r"^key\[1\] '\\udc80' holds a lone surrogate"),
    ],
)
def test_what_cannot_be_a_key_is_refused_with_its_type_and_a_remedy(key, message):
    for refuse in (position, encode, check_key):
        with pytest.raises(PayloadError, match=message):
            refuse(key)


def test_tuples_nest_to_a_limit():
    key = "a"
    for _ in range(MAX_KEY_DEPTH):
        key = (key,)
    position(key)
    with pytest.raises(PayloadError, match="more than 32 deep; use a flat tuple or a str"):
        position((key,))
    for _ in range(100_000):
        key = (key,)
    with pytest.raises(PayloadError, match="more than 32 deep"):
        check_key(key)


@given(keys)
def test_a_key_is_ambiguous_if_and_only_if_it_equals_a_key_of_another_type(key):
    def twin(key):
        if type(key) is tuple:
            return tuple(map(twin, key))
        return {"True": 1, "False": 0, "1": True, "0": False}.get(repr(key), key) if type(key) in (int, bool) else key

    assert twin(key) == key
    assert is_ambiguous(key) == (repr(twin(key)) != repr(key))


@given(st.lists(keys, max_size=20))
def test_a_dict_of_canonical_keys_keeps_all_keys_apart(many):
    table = {canonical(key): key for key in many}
    assert len(table) == len({repr(key) for key in many})
    assert all(repr(table[canonical(key)]) == repr(key) for key in many)


def test_canonical_keys_are_the_keys_themselves_unless_they_are_ambiguous():
    for key in ("a", "", b"1", 2, -1, None, (), ("a", 2), (None, ("b",))):
        assert canonical(key) is key
    for key in (0, 1, True, False, (1,), ("a", (False,))):
        wrapped = canonical(key)
        assert type(wrapped) is Canonical
        assert wrapped.key is key
        assert wrapped == canonical(key)
        assert wrapped != key
        assert hash(wrapped) == hash(canonical(key))
    assert canonical(1) != canonical(True)
    assert repr(canonical((True,))) == "Canonical((True,))"


@pytest.mark.parametrize(
    ("key", "string_hash", "place", "owner"),
    [
        ("abc", 96354, 1093038739, "B"),
        ("the", 114801, 866894208, "C"),
        ("hello", 99162322, 63761596, "A"),
        ("storm", 109770985, 801725111, "C"),
        ("zzc", 121123, 725712687, "C"),
        ("aaa", 96321, 1960425639, "D"),
        ("", 0, 0, "A"),
    ],
)
def test_places_of_the_papers_public_code(key, string_hash, place, owner):
    assert java_string_hash(key) == string_hash
    assert java_position(key) == place
    table = OutputTable([(0, 0), (1073741824, 1), (536870912, 2), (1610612736, 3)])
    assert "ABCD"[table.owner(place)] == owner


def test_the_public_codes_mix_of_edge_values():
    assert [mix32(x) & INT_MAX for x in (1, 12345, -1, 2147483647)] == [594824081, 1381718252, 594805658, 2141659318]


def test_the_public_code_hashes_utf16_units_as_the_jvm_does():
    assert java_string_hash("😀") == 31 * 0xD83D + 0xDE00
    assert java_string_hash("zzzzzz") == -685785664


def test_the_public_codes_places_of_2028_words():
    places = [java_position(word) for word in WORDS]
    assert len(set(places)) == 2028
    assert (sum(places), min(places), max(places)) == (2152268491031, 2589440, 2142500293)


@pytest.mark.parametrize(
    ("parallelism", "counts", "largest"),
    [
        (2, [1011, 1017], 0.5015),
        (4, [537, 474, 516, 501], 0.2648),
        (6, [267, 270, 249, 225, 516, 501], 0.2544),
        (8, [267, 270, 249, 225, 260, 256, 247, 254], 0.1331),
        (10, [134, 133, 138, 132, 249, 225, 260, 256, 247, 254], 0.1282),
    ],
)
def test_words_per_interval_of_the_papers_first_table(parallelism, counts, largest):
    table = OutputTable.halved(range(parallelism))
    words = Counter(table.owner(java_position(word)) for word in WORDS)
    assert [words[owner] for owner in table.owners()] == counts
    assert round(max(counts) / 2028, 4) == largest
