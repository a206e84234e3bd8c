from __future__ import annotations

import dataclasses
import json
from datetime import date, datetime, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.sinks.json_row import encode_row, with_objects
from tests.unit.records import CLASSES, Colour, Open, Pair


@dataclasses.dataclass(frozen=True)
class Held:
    """Holds anything."""

    it: Any


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
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("a/b"), "a/b"),
        (Colour.RED, "red"),
        ({Colour.RED: np.int64(3)}, {"red": 3}),
        ([np.float32(0.5), np.float64("nan"), np.bool_(True), np.str_("n")], [0.5, "NaN", True, "n"]),
        (Held(Held(float("nan"))), {"it": {"it": "NaN"}}),
        ([Held({1: Held(b"")})], [{"it": {"1": {"it": ""}}}]),
        ({Held(2), Held(1)}, [{"it": 1}, {"it": 2}]),
        (Held({(2,), (1,)}), {"it": [[1], [2]]}),
        ({"a": Pair(1, None, Colour.RED)}, {"a": [1, None, "red"]}),
        (Held([Pair(1, None, Colour.RED)]), {"it": [{"count": 1, "price": None, "colour": "red"}]}),
        (Held({Pair(1, None, Colour.RED)}), {"it": [{"count": 1, "price": None, "colour": "red"}]}),
        (Open.model_validate({"count": 1, "note": date(2026, 1, 2)}), {"count": 1, "note": "2026-01-02"}),
    ],
)
def test_each_type_of_value_has_its_place_in_json(value, expected):
    assert written(value) == expected


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_record_is_an_object_with_its_fields(cls):
    value = cls(count=1, price=float("inf"), colour=Colour.BLUE)
    (row,) = with_objects([value])
    assert written(row) == {"count": 1, "price": "Infinity", "colour": "blue"}
    assert written(Held(value)) == {"it": written(row)}


def test_values_that_are_no_records_are_left_alone():
    values = [1, "a", (1, 2), {"a": 1}, None]
    assert with_objects(values) is values


def test_text_stays_readable_and_half_characters_are_escaped():
    assert encode_row({"key": "ä", "value": "€"}) == '{"key": "ä", "value": "€"}\n'.encode()
    assert encode_row({"key": "ä", "value": "\ud800"}) == rb'{"key": "\u00e4", "value": "\ud800"}' + b"\n"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([object()], r"value\[0\] is of type object; map it to text, numbers, lists and dicts before$"),
        (1j, "value is of type complex; map it"),
        ({"a": Held([1, Fraction(1)])}, r"value\['a'\].it\[1\] is of type Fraction; map"),
        (Held(np.datetime64(1, "ns")), "value.it is of type numpy.datetime64; map"),
        (Held(np.longdouble(1)), "value.it is of type numpy.longdouble; map"),
        ({object(): 1}, "value is of type object"),
    ],
)
def test_a_value_of_another_type_is_refused_with_key_place_and_remedy(value, reason):
    with pytest.raises(SinkError, match=f"^the value of key 'k' cannot be written as JSON: {reason}"):
        encode_row({"key": "k", "value": value})


def test_a_key_of_another_type_is_refused_too():
    with pytest.raises(SinkError, match="cannot be written as JSON: key is of type complex"):
        encode_row({"key": 1j, "value": 1})


def test_a_record_that_lacks_a_field_is_refused():
    value = Open(count=1)
    del value.count
    with pytest.raises(SinkError, match="value is of type Open and lacks a field: .*count"):
        encode_row({"key": "k", "value": value})


@pytest.mark.parametrize("value", [Pair(1, None, object()), Pair(object(), None, 1)])
def test_what_with_objects_cannot_make_one_of_is_refused_with_its_row(value):
    (row,) = with_objects([value])
    with pytest.raises(
        SinkError, match="the value of key 'k' cannot be written as JSON: value.(colour|count) is of type object"
    ):
        encode_row({"key": "k", "value": row})


def test_a_value_without_end_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(SinkError, match="the value of key 'k' is nested too deeply to be written as JSON"):
        encode_row({"key": "k", "value": endless})


def test_a_value_that_is_nested_too_deeply_is_refused():
    lists = records = None
    for _ in range(100_000):
        lists, records = [lists], Held(records)
    for value in (lists, records):
        (row,) = with_objects([value])
        with pytest.raises(SinkError, match="the value of key 'k' is nested too deeply to be written as JSON"):
            encode_row({"key": "k", "value": row})


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
