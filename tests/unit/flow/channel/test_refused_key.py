"""The error for a key that cannot be one."""

from __future__ import annotations

import pytest

from esault.flow.channel.refused_key import no_key, refused_key, refused_keys


@pytest.mark.parametrize("key", ["", "a", b"", 0, -1, 2**70, True, (), ("a", 1), "ü"])
def test_what_can_be_a_key_is_not_refused(key):
    assert refused_key("count", key) is None


@pytest.mark.parametrize("key", [{}, set(), 1.5, float("nan"), object(), ("a", [1]), "\ud800"])
def test_what_cannot_is_named_with_its_unit_and_type(key):
    said = str(refused_key("count", key))
    assert "'count'" in said and type(key).__name__ in said


def test_a_long_key_does_not_fill_the_screen():
    assert len(str(refused_key("count", [1] * 100_000))) < 1000


def test_the_first_that_cannot_be_one_is_named():
    assert str(refused_keys("u", ["a", None, {}])) == str(no_key("u"))
    assert "dict" in str(refused_keys("u", ["a", {}, None]))


def test_where_none_of_them_is_wrong_the_reason_is_said():
    assert "too long" in str(refused_keys("u", ["a"], "too long"))
    assert "too long" in str(refused_keys("u", iter(()), "too long"))
