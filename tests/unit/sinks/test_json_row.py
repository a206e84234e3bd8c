from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.sinks.json_row import encode_row


def written(value):
    data = encode_row({"key": 1, "value": value})
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(data, parse_constant=refuse)["value"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ([1, 2.5, "ä\n\u2028", True], [1, 2.5, "ä\n\u2028", True]),
        ((1, (2, "x")), [1, [2, "x"]]),
        (datetime(2026, 1, 2, 3, 4, 5, 6), "2026-01-02T03:04:05.000006"),
        (datetime(2026, 1, 2, tzinfo=timezone.utc), "2026-01-02T00:00:00+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (Decimal("1.10"), "1.10"),
        (b"\x00\xff", "AP8="),
        ({3, 10, 2}, [2, 3, 10]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({(1, "b"), (1, "a")}, [[1, "a"], [1, "b"]]),
        ({1, "a", None}, ["a", 1, None]),
        ({frozenset({2}), frozenset({1, 3})}, [[1, 3], [2]]),
        ({Decimal("2"), Decimal("10")}, ["2", "10"]),
        ({Decimal("2"), Decimal("NaN")}, ["2", "NaN"]),
        ({(1, frozenset({1})), (1, frozenset({2, 3}))}, [[1, [1]], [1, [2, 3]]]),
        (float("nan"), "NaN"),
        ([float("inf"), {"x": float("-inf")}], ["Infinity", {"x": "-Infinity"}]),
        (2**80, 2**80),
        ({"a": {"b": (1, b"")}}, {"a": {"b": [1, ""]}}),
        (
            {2: "a", False: "b", None: "c", 1.5: "d"},
            {"2": "a", "false": "b", "null": "c", "1.5": "d"},
        ),
        ({(1, "x"): 1, b"\xff": 2, date(2026, 1, 2): 3}, {'[1, "x"]': 1, "/w==": 2, "2026-01-02": 3}),
        ({float("nan"): (1,)}, {"NaN": [1]}),
        ({2: {(1,): 2}}, {"2": {"[1]": 2}}),
    ],
)
def test_each_type_of_value_has_its_place_in_json(value, expected):
    assert written(value) == expected


def test_text_stays_readable_and_half_characters_are_escaped():
    assert encode_row({"key": "ä", "value": "€"}) == '{"key": "ä", "value": "€"}\n'.encode()
    assert encode_row({"key": "ä", "value": "\ud800"}) == rb'{"key": "\u00e4", "value": "\ud800"}' + b"\n"


def test_a_value_of_another_type_is_refused_with_its_key():
    with pytest.raises(
        SinkError, match="the value of key 'k' cannot be written as JSON: object is none of the types that"
    ):
        encode_row({"key": "k", "value": [object()]})


def test_a_value_without_end_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(SinkError, match="the value of key 'k' is nested too deeply to be written as JSON"):
        encode_row({"key": "k", "value": endless})


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.decimals(allow_nan=False)
    | st.just(Decimal("NaN"))
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)
VALUES = st.recursive(
    HASHABLE,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(HASHABLE, inner, max_size=3) | st.sets(HASHABLE, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_every_value_that_can_travel_is_one_line_of_valid_json(value):
    written(value)
