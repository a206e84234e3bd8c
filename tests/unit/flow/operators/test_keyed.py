"""A dict in which True and 1 are two keys does what a plain one does with keys that Python keeps apart."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.flow.operators.keyed import Keyed

KEYS = [True, 1, False, 0, (True, "a"), (1, "a"), "a", None]


def apart(key: Hashable) -> tuple[str, Hashable]:
    """A key that Python tells from all others here."""
    return repr(key), key


@given(st.lists(st.tuples(st.sampled_from(["put", "take"]), st.sampled_from(KEYS), st.integers(0, 9)), max_size=30))
def test_it_does_what_a_dict_with_keys_that_are_apart_does(steps):
    keyed, plain = Keyed({}), {}
    for what, key, value in steps:
        if what == "put":
            keyed[key] = plain[apart(key)] = value
        else:
            assert keyed.pop(key, None) == plain.pop(apart(key), None)
    assert len(keyed) == len(plain)
    assert [apart(key) for key in keyed] == list(plain)
    assert list(map(apart, reversed(keyed))) == list(reversed(plain))
    assert all((key in keyed) == (apart(key) in plain) and keyed.get(key) == plain.get(apart(key)) for key in KEYS)
    copy = keyed.copy()
    assert repr(copy) == repr(keyed) == "{" + ", ".join(f"{key}: {value}" for (key, _), value in plain.items()) + "}"
    copy["more"] = 1
    assert "more" not in keyed


def test_what_is_not_there_is_a_key_error():
    with pytest.raises(KeyError):
        Keyed({1: "one"})[True]
    with pytest.raises(KeyError):
        del Keyed({(True,): "one"})[(1,)]
