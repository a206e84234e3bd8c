"""The key of a tuple, made of what stands in a record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.routing.ring import check_key
from esault.sources.record_key import UnusableError, as_key, described, shown

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=5,
)


@given(json_values)
def test_what_is_taken_can_be_a_key_and_all_else_is_refused(value):
    try:
        key = as_key(value)
    except UnusableError:
        return
    check_key(key)
    hash(key)


@pytest.mark.parametrize(
    ("found", "key"),
    [("ü", "ü"), ("", ""), (0, 0), (True, True), (b"\xff", b"\xff"), ([1, ["a", []]], (1, ("a", ()))), ((1,), (1,))],
)
def test_lists_become_tuples_and_all_else_stays(found, key):
    assert as_key(found) == key and type(as_key(found)) is type(key)


@pytest.mark.parametrize("found", [None, 1.5, float("nan"), {}, [None], [[1.0]], bytearray(b"a"), object()])
def test_what_is_none_is_told_with_its_type(found):
    with pytest.raises(UnusableError, match="of type"):
        as_key(found)


def test_a_lone_surrogate_is_no_text():
    with pytest.raises(UnusableError, match="lone surrogate"):
        as_key(["a\ud800"])


@given(st.text(max_size=200))
def test_what_is_shown_is_short_and_begins_alike(text):
    found = shown(text)
    assert len(found) <= 80 and text.startswith(found.removesuffix("...")) and (found == text or len(text) > 80)


def test_the_type_of_an_error_is_said_where_that_says_more():
    assert described(ValueError("bad")) == "bad" == described(UnusableError("bad"))
    assert described(KeyError("k")) == "KeyError: 'k'"
    assert described(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no")).startswith("UnicodeDecodeError: ")
