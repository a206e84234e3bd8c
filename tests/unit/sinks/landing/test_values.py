"""Values of a column: exactly, or not at all; and the columns of a tuple's value, in whatever shape it comes."""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.sinks.landing.schema import Column
from esault.sinks.landing.values import fitting, short, unfold

NOW = datetime(2026, 1, 2, tzinfo=timezone.utc)


class Fine(datetime):
    """As pandas has them."""

    nanosecond = 7


class Color(enum.Enum):
    RED = "r"


@dataclass
class Point:
    x: int
    y: int


Pair = namedtuple("Pair", "x y")


def fit(kind, value, nullable=False):
    return fitting("sink", Column("c", kind, nullable), [value], ["k"])[0]


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        ("string", "ü", "ü"),
        ("string", Color.RED, "r"),
        ("long", 2**63 - 1, 2**63 - 1),
        ("long", -(2**63), -(2**63)),
        ("double", 2**53, 2.0**53),
        ("double", 0.1, 0.1),
        ("boolean", False, False),
        ("binary", b"\0", b"\0"),
        ("timestamp", NOW, NOW),
        ("date", date(2026, 1, 2), date(2026, 1, 2)),
        ("decimal(38,18)", Decimal("1.5"), Decimal("1.5")),
        ("decimal(38,18)", 7, Decimal(7)),
        ("decimal(38,18)", Decimal("-0"), Decimal(0)),
        ("decimal(38,18)", Decimal("9" * 20 + "." + "9" * 18), Decimal("9" * 20 + "." + "9" * 18)),
        ("decimal(38,18)", Decimal("1.0000000000000000000000"), Decimal(1)),
    ],
)
def test_what_fits_is_kept_exactly(kind, value, kept):
    found = fit(kind, value)
    assert (found, type(found)) == (kept, type(kept))
    assert fit(kind, found) == kept


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("string", 1, "of type int"),
        ("string", "\ud800", "half a surrogate pair"),
        ("string", None, r"declare the column with `\| None` to allow nulls"),
        ("string", [1], "a column holds one value"),
        ("string", Point(1, 2), "a column holds one value"),
        ("long", True, "of type bool"),
        ("long", 1.0, "of type float"),
        ("long", 2**63, "does not fit into 64 bits"),
        ("long", -(2**63) - 1, "does not fit into 64 bits"),
        ("double", True, "of type bool"),
        ("double", 2**53 + 1, "as a float it would be another number"),
        ("double", 10**400, "as a float it would be another number"),
        ("boolean", 1, "of type int"),
        ("binary", "a", "of type str"),
        ("timestamp", datetime(2026, 1, 2), "it has no time zone"),
        ("timestamp", date(2026, 1, 2), "of type date"),
        ("timestamp", Fine(2026, 1, 2, tzinfo=timezone.utc), "it has nanoseconds"),
        ("date", NOW, "of type datetime"),
        ("decimal(38,18)", 1.5, "of type float"),
        ("decimal(38,18)", True, "of type bool"),
        ("decimal(38,18)", Decimal("NaN"), "finite numbers only"),
        ("decimal(38,18)", Decimal(10) ** 20, "more than 20 digits"),
        ("decimal(38,18)", Decimal("1e-19"), "more than 20 digits before, or 18 after"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_do(kind, value, why):
    with pytest.raises(SinkError, match=rf"^sink: column 'c' is .*, but key 'k' has .*{why}"):
        fit(kind, value)
    if value is not None:
        with pytest.raises(SinkError, match=why):
            fit(kind, value, nullable=True)


def test_null_is_a_value_where_it_is_allowed_and_of_keys_it_is_said_what_to_do():
    assert fit("string", None, nullable=True) is None
    keys = ["a", None]
    with pytest.raises(SinkError, match=r"a key is None, of type NoneType; use .key_by"):
        fitting("sink", Column("c", "string"), keys, keys)
    numbers = [1]
    with pytest.raises(SinkError, match=r"it is the key's column: declare its type there"):
        fitting("sink", Column("c", "string"), numbers, numbers)


def columns(values, names=("x", "y"), keys=None):
    keys = list(range(len(values))) if keys is None else keys
    return [list(column) for column in unfold("sink", "k", list(names), values, keys)]


@pytest.mark.parametrize("make", [lambda x, y: (x, y), lambda x, y: [x, y], lambda x, y: {"y": y, "x": x}, Point, Pair])
def test_a_value_fills_its_columns_in_whatever_shape(make):
    rows = [(1, 2), (3, 4), (5, 6)]
    assert columns([make(*row) for row in rows]) == [[1, 3, 5], [2, 4, 6]]
    assert columns([make(1, 2), {"y": 4}, (5, 6)]) == [[1, None, 5], [2, 4, 6]]


def test_one_column_takes_the_value_as_it_is():
    assert columns(["a", None], ["x"]) == [["a", None]]
    assert columns([("a",), {"x": "b"}], ["x"]) == [["a", "b"]]
    assert columns([Counter(x=3), OrderedDict(x=4)], ["x"]) == [[3, 4]]
    assert columns([None, 3], []) == []


def test_names_that_are_missing_are_null_and_those_that_are_no_columns_refused():
    assert columns([{"x": 1}, {"y": 2}]) == [[1, None], [None, 2]]
    with pytest.raises(SinkError, match="the value of key 0 has 'z', which is no column; the value's columns are x, y"):
        columns([{"z": 1}])
    with pytest.raises(SinkError, match="must fill 2 columns .x, y., but it is .1, 2, 3., of type tuple"):
        columns([(1, 2, 3)])
    with pytest.raises(SinkError, match="must fill 2 columns .x, y., but it is 1, of type int"):
        columns([1])


def test_the_name_of_the_keys_column_must_have_the_key():
    assert columns([{"k": "a", "x": 1, "y": 2}], keys=["a"]) == [[1], [2]]
    assert columns([{"k": "r", "x": 1, "y": 2}], keys=[Color.RED]) == [[1], [2]]
    with pytest.raises(SinkError, match="the value of key 'a' has 'k' too, the name of the key's column"):
        columns([{"k": "b", "x": 1, "y": 2}], keys=["a"])


def test_a_long_value_is_shortened():
    assert short("x" * 78) == repr("x" * 78)
    assert short("x" * 79) == "'" + "x" * 76 + "..."


@given(st.lists(st.sampled_from([(1, 2), [3, 4], {"x": 5, "y": 6}, {"y": 7}, Point(8, 9), Pair(10, 11)]), max_size=8))
def test_values_of_several_shapes_fill_their_columns_row_by_row(values):
    def row(value):
        found = vars(value) if isinstance(value, Point) else value._asdict() if isinstance(value, Pair) else value
        return (found.get("x"), found.get("y")) if isinstance(found, dict) else tuple(found)

    assert list(zip(*columns(values))) == [row(value) for value in values]
