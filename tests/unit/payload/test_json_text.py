"""Values as JSON for people."""

from __future__ import annotations

import json
from collections import Counter, deque
from dataclasses import dataclass
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.payload.json_text import json_text, key_text, strict_json


def refuse(name):
    raise AssertionError(f"{name} is no JSON")


@dataclass
class Point:
    x: int
    tags: set


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"n": 1, "seen": {3, 1}}, '{"n": 1, "seen": [1, 3]}'),
        (Point(2, {"a"}), '{"x": 2, "tags": ["a"]}'),
        (Counter(a=2), '{"a": 2}'),
        ({("a", 1): None}, '{"[\\"a\\", 1]": null}'),
        (float("inf"), '"Infinity"'),
        (deque([1]), '"deque([1])"'),
        (b"x", "\"b'x'\""),
    ],
)
def test_what_json_has_stands_as_json_and_the_rest_as_python_writes_it(value, text):
    assert json_text(value) == text


@given(
    st.recursive(
        st.none() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_whatever_it_is_it_is_json(value):
    json.loads(json_text(value), parse_constant=refuse)
    json.loads(strict_json(value, repr), parse_constant=refuse)


@given(st.recursive(st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists))
def test_strict_json_of_finite_numbers_is_that_of_the_library(value):
    assert strict_json(value) == json.dumps(value)


def test_strict_json_finds_what_is_not_finite_wherever_it_stands():
    point = Point(1, [nan, {inf: (-inf,)}])
    assert strict_json({"a": point, ("no", "key"): 1}, vars) == (
        '{"a": {"x": 1, "tags": ["NaN", {"Infinity": ["-Infinity"]}]}}'
    )


def test_a_state_that_holds_itself_ends():
    value: list = []
    value.append(value)
    assert "[...]" in json_text(value)


def test_a_key_that_is_a_text_is_typed_as_it_is():
    assert [key_text(key) for key in ("cat", 7, ("a", 1))] == ["cat", "7", '["a", 1]']


def test_half_a_surrogate_pair_is_escaped():
    assert json_text({"a": "\ud83d"}) == '{"a": "\\ud83d"}'
    assert json_text("ä") == '"ä"'
