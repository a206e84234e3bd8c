"""Questions about many keys at once are answered as they are of each key alone."""

from __future__ import annotations

from collections import Counter, OrderedDict

from hypothesis import example, given
from hypothesis import strategies as st

from esault.errors import PayloadError
from esault.routing.many_keys import are_keys, have_bools, names_of
from esault.routing.ring import MAX_KEY_DEPTH, canonical, check_key


class Text(str):
    pass


PARTS = st.one_of(st.text("ab", max_size=2), st.integers(-1, 2), st.booleans(), st.binary(max_size=1), st.none())
KEYS = st.recursive(PARTS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)
SINGLE = KEYS.filter(lambda key: key is not None)
OTHERS = st.sampled_from(
    [1.0, [1], Text("a"), Counter(), OrderedDict(), frozenset(), (1.0,), ("a", (Text("b"),)), None]
)


def deep(levels, key=()):
    for _ in range(levels):
        key = (key,)
    return key


def is_key(key):
    if key is None:
        return False  # is one inside of a tuple alone
    try:
        check_key(key)
    except PayloadError:
        return False
    return True


@given(keys=st.lists(st.one_of(SINGLE, OTHERS), min_size=1, max_size=5))
@example(keys=[deep(MAX_KEY_DEPTH - 1)])
@example(keys=[deep(MAX_KEY_DEPTH)])
@example(keys=[deep(MAX_KEY_DEPTH - 1, "a")])
@example(keys=[deep(MAX_KEY_DEPTH, "a")])
@example(keys=["a", deep(MAX_KEY_DEPTH + 1)])
@example(keys=[(None,), (None, "a")])
@example(keys=[None, None])
def test_keys_are_told_from_what_is_none(keys):
    assert are_keys(keys) is all(map(is_key, keys))


def holds_a_bool(key):
    return type(key) is bool or (type(key) is tuple and any(map(holds_a_bool, key)))


@given(keys=st.lists(SINGLE, max_size=5))
def test_bools_are_found_however_deep_they_are(keys):
    assert have_bools(keys) is any(map(holds_a_bool, keys))


@given(keys=st.lists(SINGLE, max_size=6))
@example(keys=[(2, (1,)), (2, (True,))])
@example(keys=[0, "a"])
@example(keys=[1, True])
def test_names_are_those_of_each_key_once_in_their_order(keys):
    assert names_of(keys) == list(dict.fromkeys(map(canonical, keys)))
