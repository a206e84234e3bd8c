"""Finding what cannot travel: it agrees with the packer, and says where."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import msgpack
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault.errors import PayloadError
from esault.payload.codec import Codec
from esault.payload.portable import explain, find_unportable

codec = Codec()


class Odd:
    """Hashable, and cannot travel."""


good = st.one_of(st.integers(), st.text(st.characters(exclude_categories=["Cs"]), max_size=3), st.none(), st.decimals())
bad = st.one_of(
    st.builds(Odd), st.just("\ud800"), st.complex_numbers(), st.just(msgpack.ExtType(82, b"")), st.just(numpy.int8(1))
)
mixed = st.one_of(good, good, good, bad).filter(lambda x: not (isinstance(x, Decimal) and x.is_snan()))
hashable = st.recursive(
    mixed,
    lambda inner: st.one_of(st.lists(inner, max_size=3).map(tuple), st.frozensets(inner, max_size=3)),
    max_leaves=5,
)
values = st.recursive(
    hashable,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(hashable, inner, max_size=3), st.sets(hashable, max_size=3)
    ),
    max_leaves=12,
)


def packs(value: object) -> bool:
    try:
        codec.unpack(codec.pack(value))
    except PayloadError:
        return False
    return True


def has_own_code(value: object) -> bool:
    return "extension code" in (explain(value) or "")


@settings(max_examples=400, deadline=None)
@given(values)
def test_the_search_finds_something_if_and_only_if_the_packer_refuses(value):
    found = find_unportable(value)
    assert (found is None) == (explain(value) is None)
    if not has_own_code(value):  # the packer lets msgpack's own type for extensions pass
        assert packs(value) == (found is None)


@pytest.mark.parametrize("leaf", [1, (), {}, "a", 2**70, frozenset(), None, {(1,)}], ids=repr)
@pytest.mark.parametrize("make", [lambda x: [x], lambda x: {1: x}], ids=["list", "dict"])
def test_the_search_agrees_with_the_packer_at_every_depth(make, leaf):
    for depth in range(1, 1030):
        leaf = make(leaf)
        if depth > 1015:
            assert packs(leaf) == (find_unportable(leaf) is None)


def test_the_search_agrees_with_the_packer_about_sets_in_sets():
    value = frozenset()
    for _ in range(12):
        value = frozenset([(value, 1)])
        assert packs({"a": value}) == (find_unportable({"a": value}) is None)


@pytest.mark.parametrize(
    ("value", "where", "kind"),
    [
        (1j, "", complex),
        ([1, 2j], "[1]", complex),
        ({"a": [0, {5: 2j}]}, "['a'][1][5]", complex),
        ({(1, 2j): 0}, " (key)[1]", complex),
        ([{2j}], "[0] (element)", complex),
        ({"x" * 500: 2j}, "['xxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxx']", complex),
        (["ok", "\udc80"], "[1]", str),
    ],
)
def test_the_place_and_the_type_are_named(value, where, kind):
    assert find_unportable(value) == (where, kind)


def test_a_long_way_is_shortened():
    value = 1j
    for _ in range(300):
        value = [value]
    where, kind = find_unportable(value)
    assert kind is complex
    assert len(where) == 93
    assert where.startswith("[0][0]")
    assert where.endswith("[0][0]")


def test_what_contains_itself_is_found_without_end():
    loop: list = []
    loop.append(loop)
    assert find_unportable({"a": loop})[1] is list
    assert "contains itself" in explain({"a": loop})


def test_a_time_with_nanoseconds_or_none_at_all_is_refused():
    class Timestamp(datetime):
        nanosecond = 5

    class NaT(datetime):
        def __eq__(self, other):
            return False

        def __ne__(self, other):
            return True

        __hash__ = None

    exact, none = Timestamp(2020, 1, 1), NaT(2020, 1, 1)
    assert explain([exact]) == (
        "test_a_time_with_nanoseconds_or_none_at_all_is_refused.<locals>.Timestamp at value[0] has nanoseconds, which "
        "a datetime cannot hold; use value[0].value or value[0].floor('us')"
    )
    assert explain(none).endswith("NaT is no time and cannot travel; use None")
    assert not packs(exact)


def test_an_extension_code_of_our_own_is_found():
    assert explain(msgpack.ExtType(80, b"")).startswith(
        "ExtType has an extension code that eSault uses itself, 80 to 88"
    )
    assert find_unportable(msgpack.ExtType(79, b"")) is None


def test_a_key_whose_repr_fails_is_still_named():
    class Shy(str):
        __slots__ = ()

        def __repr__(self):
            raise RuntimeError

    where, kind = find_unportable({Shy("a"): 1j})
    assert kind is complex
    assert where.startswith("[<Shy")


def test_a_key_too_long_to_write_down_is_still_named():
    assert find_unportable({10**9999: 1j})[0].startswith("[<int")


def test_what_can_travel_has_no_explanation():
    assert explain({"a": [1, 2.5, b"x", {frozenset([1])}, datetime(2020, 1, 1)]}) is None
