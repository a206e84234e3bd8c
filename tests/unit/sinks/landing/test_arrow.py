"""Values go into Arrow and Parquet exactly, or are refused by name."""

from __future__ import annotations

import enum
import math
from array import array
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.sinks.landing.arrow import arrow_schema, constant, moments, parquet_bytes, to_array
from esault.sinks.landing.schema import Column
from esault.sinks.landing.values import spread_keys, unfold
from tests.unit.records import CLASSES, Colour, Open, Pair

pa = pytest.importorskip("pyarrow")


class Level(enum.IntEnum):
    HIGH = 3


class Name(str):
    pass


def unset() -> Open:
    thing = Open(count=1)
    del thing.count
    return thing


ZONES = st.sampled_from([timezone.utc, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-11))])
EXACT_DECIMALS = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent) if digits else Decimal(0),
    st.integers(-(10**27), 10**27),
    st.integers(-18, -8),
)
VALUES = {
    "string": st.text(),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(),
    "boolean": st.booleans(),
    "binary": st.binary(),
    "timestamp": st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=ZONES),
    "date": st.dates(),
    "decimal(38,18)": EXACT_DECIMALS,
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("nullable", [False, True])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_fits_comes_back_the_same(kind: str, nullable: bool, data: st.DataObject) -> None:
    one = VALUES[kind] | st.none() if nullable else VALUES[kind]
    values = data.draw(st.lists(one, max_size=30))
    column = Column("x", kind, nullable)
    array = to_array("T", column, values, values)
    array.validate(full=True)
    table = pa.Table.from_arrays([array], schema=arrow_schema((column,)))
    import pyarrow.parquet as pq

    back = pq.read_table(pa.BufferReader(parquet_bytes(table)))["x"].to_pylist()
    if kind == "double":
        assert [math.isnan(a) if b is not None and math.isnan(b) else a == b for a, b in zip(back, values)].count(
            False
        ) == 0
    else:
        assert back == values


def test_subclasses_and_whole_numbers_for_floats_fit() -> None:
    assert to_array("T", Column("x", "long"), [Level.HIGH, 1], "ab").to_pylist() == [3, 1]
    assert to_array("T", Column("x", "string"), [Name("n"), "m"], "ab").to_pylist() == ["n", "m"]
    assert to_array("T", Column("x", "double"), [1, 2.5], "ab").to_pylist() == [1.0, 2.5]
    assert to_array("T", Column("x", "decimal(38,18)"), [7, Decimal("-0.5"), Decimal("0E+99")], "abc").to_pylist() == [
        *(Decimal(7), Decimal("-0.5"), Decimal(0))
    ]


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("long", "7", "is int, but key 'k' has '7', of type str; declare the column as str, or emit "),
        ("long", True, "is int, but key 'k' has True, of type bool; declare the column as bool, or emit "),
        ("long", 1.0, "is int, but key 'k' has 1.0, of type float; declare the column as float, or emit "),
        ("long", None, r"has None, of type NoneType; declare the column with `\| None` to allow nulls$"),
        ("long", 2**63, "of type int: it does not fit into 64 bits; declare the column as Decimal or str"),
        ("string", b"x", "is str, but key 'k' has b'x', of type bytes; declare the column as bytes, or emit "),
        ("string", "\ud800", "it holds half a surrogate pair, which is no valid text"),
        ("binary", "x", "is bytes, but key 'k' has 'x', of type str; declare the column as str, or emit "),
        ("boolean", 1, "is bool, but key 'k' has 1, of type int; declare the column as int, or emit "),
        ("double", "1.5", "is float, but key 'k' has '1.5', of type str; declare the column as str, or emit "),
        ("double", 2**53 + 1, "as a float it would be another number"),
        ("double", 10**400, "as a float it would be another number"),
        ("timestamp", datetime(2020, 1, 1), r"it has no time zone, .* value.replace\(tzinfo=timezone.utc\)"),
        (
            "timestamp",
            date(2020, 1, 1),
            "is datetime, but key 'k' has datetime.date.*, of type date; declare the column as date, or emit ",
        ),
        (
            "date",
            datetime(2020, 1, 1, tzinfo=timezone.utc),
            "is date, but key 'k' has .*, of type datetime; declare the column as datetime, or emit ",
        ),
        (
            "decimal(38,18)",
            1.5,
            "is Decimal, but key 'k' has 1.5, of type float; declare the column as float, or emit ",
        ),
        ("decimal(38,18)", Decimal("NaN"), "a Decimal column holds finite numbers only"),
        ("decimal(38,18)", Decimal("1e20"), "it has more than 20 digits before"),
        ("decimal(38,18)", Decimal("1e-19"), "or 18 after the point"),
        ("decimal(38,18)", Decimal("1234567800e-30"), "or 18 after the point"),
        ("long", Colour.RED, "is int, but key 'k' has <Colour.RED: 'red'>, of type Colour$"),
        ("long", np.datetime64(1, "ns"), "is int, but key 'k' has .*, of type datetime64$"),
        ("timestamp", np.datetime64("2020-01-01T00:00"), "it has no time zone"),
        (
            "string",
            Open(count=1),
            r"has Open\(count=1\), of type Open; a column holds one value: give its parts columns",
        ),
        ("string", ["a"], "of type list; a column holds one value"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(kind: str, value: Any, why: str) -> None:
    good = {"long": 1, "string": "a", "binary": b"", "boolean": True, "double": 0.5}.get(kind)
    values, keys = ([value], ["k"]) if good is None else ([good, value], ["fine", "k"])
    with pytest.raises(SinkError, match=f"^T: column 'x' .*{why}"):
        to_array("T", Column("x", kind), values, keys)


def test_constants_and_moments() -> None:
    assert constant("run-ü", 3).to_pylist() == ["run-ü"] * 3
    assert constant("", 2).to_pylist() == ["", ""]
    assert constant("x", 0).to_pylist() == []
    assert moments(array("q", [-1, 1_700_000_000_000_001])).to_pylist()[1].microsecond == 1


def test_values_unfold_from_scalars_tuples_and_dicts() -> None:
    keys = ["k", "l"]
    assert unfold("T", "k", [], [5, None], keys) == []
    assert list(unfold("T", "k", ["a"], [5, None], keys)[0]) == [5, None]
    assert list(unfold("T", "k", ["a"], [(5,), 6], keys)[0]) == [5, 6]
    assert [list(column) for column in unfold("T", "k", ["a", "b"], [(1, 2), [3, 4]], keys)] == [[1, 3], [2, 4]]
    assert [list(column) for column in unfold("T", "k", ["a", "b"], [(1, 2), {"b": 4}], keys)] == [[1, None], [2, 4]]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("others", [[], [(9, None, "blue")]])
def test_records_unfold_by_the_names_of_their_fields(cls: type, others: list[Any]) -> None:
    values = [*(cls(count=n, price=0.5, colour=Colour.RED) for n in range(2)), *others]
    keys = ["k", "l", "m"][: len(values)]
    names = ["price", "extra", "count", "colour"] if not others else ["count", "price", "colour"]
    found = dict(zip(names, map(list, unfold("T", "k", names, values, keys))))
    assert found["count"][:2] == [0, 1]
    assert found["price"][:2] == [0.5, 0.5]
    assert found["colour"][:2] == [Colour.RED, Colour.RED]
    assert found.get("extra", [None] * 2) == [None, None]


def test_a_record_of_one_field_fills_one_column() -> None:
    assert [list(column) for column in unfold("T", "k", ["count"], [Open(count=1), Open(count=2)], ["a", "b"])] == [
        [1, 2]
    ]


def test_the_key_may_stand_in_the_value_too_where_it_is_the_same() -> None:
    for values in (
        [Pair(1, 0.5, Colour.RED), Pair(2, 0.5, Colour.BLUE)],
        [{"count": 1, "colour": "red"}, {"count": 2, "colour": "blue"}],
        [{"count": 1}, {"count": 2, "colour": "blue"}],
        [{"count": 1, "colour": Colour.RED}, Pair(2, 0.5, Colour.BLUE)],
    ):
        assert list(unfold("T", "colour", ["count", "price"], values, ["red", "blue"])[0]) == [1, 2]


def test_what_stands_for_a_plainer_value_lands_as_that() -> None:
    many = [UUID(int=1), Path("a"), Colour.RED, np.str_("n"), "x"]
    assert to_array("T", Column("x", "string"), many, many).to_pylist() == [str(UUID(int=1)), "a", "red", "n", "x"]
    assert to_array("T", Column("x", "long"), [np.int32(1), np.uint8(2), 3], "abc").to_pylist() == [1, 2, 3]
    assert to_array("T", Column("x", "double"), [np.float32(0.5), np.int64(2)], "ab").to_pylist() == [0.5, 2.0]
    assert to_array("T", Column("x", "boolean"), [np.bool_(True)], "a").to_pylist() == [True]


def test_of_a_key_that_does_not_fit_it_is_said_where_its_type_is_declared() -> None:
    keys = ["a", None]
    with pytest.raises(
        SinkError, match=r"but a key is None, of type NoneType; use .key_by\(...\) before, or declare the col"
    ):
        to_array("T", Column("key", "string"), keys, keys)
    keys = ["a", 3]
    with pytest.raises(
        SinkError, match="T: column 'key' is str, but a key is 3, of type int; it is the key's column: decl"
    ):
        to_array("T", Column("key", "string"), keys, keys)


@pytest.mark.parametrize(
    ("names", "value", "message"),
    [
        (
            ["a", "b"],
            (1, 2, 3),
            r"T: the value of key 'k' must fill 2 columns \(a, b\), but it is \(1, 2, 3\), of type",
        ),
        (["a", "b"], 1, r"T: the value of key 'k' must fill 2 columns \(a, b\), but it is 1, of type int"),
        (["a"], (1, 2), r"must fill 1 columns \(a\), but it is \(1, 2\), of type tuple"),
        (["a"], {"c": 1}, "T: the value of key 'k' has 'c', which is no column; the value's columns are a"),
        (["a"], Open(count=1), "T: the value of key 'k' has 'count', which is no column; the value's columns are a$"),
        (
            ["count"],
            Open.model_validate({"count": 1, "note": 2}),
            "T: the value of key 'k' has 'note', which is no column",
        ),
        (["count"], Pair(1, 2.5, Colour.RED), "has 'price', which is no column; .*; a plain tuple fills them by place"),
        (["a", "b"], object(), "of type object; use a tuple of them, a dict, or an object with such fields"),
        (
            ["count"],
            {"count": 1, "key": "l"},
            "the value of key 'k' has 'key' too, the name of the key's column, and there it is 'l'; "
            r"use .key_by\(lambda value: value\['key'\]\) before, or another name",
        ),
        (
            ["count", "note"],
            Open.model_validate({"count": 1, "key": "l"}),
            r"there it is 'l'; use .key_by\(lambda value: value.key\) before",
        ),
        (["count"], unset(), "the value of key 'k', of type Open, lacks a field: .*count"),
    ],
)
def test_a_value_of_another_shape_is_refused_by_name(names: list[str], value: Any, message: str) -> None:
    with pytest.raises(SinkError, match=message):
        unfold("T", "key", names, [value], ["k"])


class Total(NamedTuple):
    total: int
    day: str = "mon"


@pytest.mark.parametrize(
    ("names", "key", "value", "row"),
    [
        (["user", "day", "total"], ("a", "mon"), 3, ("a", "mon", 3)),
        (["user", "day", "total"], ("a", "mon"), (3,), ("a", "mon", 3)),
        (["user", "day", "total"], ("a", "mon"), {"total": 3}, ("a", "mon", 3)),
        (["user", "day", "total"], ("a", "mon"), {"total": 3, "day": "mon"}, ("a", "mon", 3)),
        (["user", "day", "total"], ("a", "mon"), Total(3), ("a", "mon", 3)),
        (["user", "day", "total"], ("a", "mon"), None, ("a", "mon", None)),
        (["user", "day"], ("a",), "mon", ("a", "mon")),
        (["user", "day"], ("a", "mon"), (), ("a", "mon")),
        (["user", "day", "n", "total"], ("a", "mon"), [1, 3], ("a", "mon", 1, 3)),
    ],
)
def test_a_key_that_is_a_tuple_fills_as_many_columns_as_it_has_parts(names, key, value, row) -> None:
    keys, values = spread_keys("T", names, [key], [value])
    assert (keys[0], *(cells[0] for cells in unfold("T", names[0], names[1:], values, keys))) == row


def test_other_keys_are_as_they_were() -> None:
    keys, values = ["a", "b"], [1, None]
    assert spread_keys("T", ["key", "n"], keys, values) == (keys, values)
    assert spread_keys("T", ["key", "n"], keys, values)[1] is values
    assert spread_keys("T", ["key", "n", "m"], [("a", 1), "b"], [2, (3, 4)]) == (["a", "b"], [(1, 2), (3, 4)])


def test_a_value_that_says_another_key_is_refused() -> None:
    with pytest.raises(
        SinkError, match=r"T: the value of key \('a', 'mon'\) has 'day' too, a column of the key, and there it is 'tue'"
    ):
        spread_keys("T", ["user", "day", "total"], [("a", "mon")], [{"day": "tue", "total": 1}])
