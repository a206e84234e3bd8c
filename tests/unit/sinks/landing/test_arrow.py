"""Values go into Arrow and Parquet exactly, or are refused by name."""

from __future__ import annotations

import enum
import math
from array import array
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.sinks.landing.arrow import arrow_schema, constant, moments, parquet_bytes, to_array
from esault.sinks.landing.schema import Column
from esault.sinks.landing.values import unfold

pa = pytest.importorskip("pyarrow")


class Colour(enum.IntEnum):
    RED = 3


class Name(str):
    pass


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
    assert to_array("T", Column("x", "long"), [Colour.RED, 1], "ab").to_pylist() == [3, 1]
    assert to_array("T", Column("x", "string"), [Name("n"), "m"], "ab").to_pylist() == ["n", "m"]
    assert to_array("T", Column("x", "double"), [1, 2.5], "ab").to_pylist() == [1.0, 2.5]
    assert to_array("T", Column("x", "decimal(38,18)"), [7, Decimal("-0.5"), Decimal("0E+99")], "abc").to_pylist() == [
        *(Decimal(7), Decimal("-0.5"), Decimal(0))
    ]


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("long", "7", "is int, but key 'k' has '7', of type str$"),
        ("long", True, "is int, but key 'k' has True, of type bool$"),
        ("long", 1.0, "is int, but key 'k' has 1.0, of type float$"),
        ("long", None, r"has None, of type NoneType; declare the column with `\| None` to allow nulls$"),
        ("long", 2**63, "of type int: it does not fit into 64 bits; declare the column as Decimal or str"),
        ("string", b"x", "is str, but key 'k' has b'x', of type bytes$"),
        ("string", "\ud800", "it holds half a surrogate pair, which is no valid text"),
        ("binary", "x", "is bytes, but key 'k' has 'x', of type str$"),
        ("boolean", 1, "is bool, but key 'k' has 1, of type int$"),
        ("double", "1.5", "is float, but key 'k' has '1.5', of type str$"),
        ("double", 2**53 + 1, "as a float it would be another number"),
        ("double", 10**400, "as a float it would be another number"),
        ("timestamp", datetime(2020, 1, 1), r"it has no time zone, .* value.replace\(tzinfo=timezone.utc\)"),
        ("timestamp", date(2020, 1, 1), "is datetime, but key 'k' has datetime.date.*, of type date$"),
        ("date", datetime(2020, 1, 1, tzinfo=timezone.utc), "is date, but key 'k' has .*, of type datetime$"),
        ("decimal(38,18)", 1.5, "is Decimal, but key 'k' has 1.5, of type float$"),
        ("decimal(38,18)", Decimal("NaN"), "a Decimal column holds finite numbers only"),
        ("decimal(38,18)", Decimal("1e20"), "it has more than 20 digits before"),
        ("decimal(38,18)", Decimal("1e-19"), "or 18 after the point"),
        ("decimal(38,18)", Decimal("1234567800e-30"), "or 18 after the point"),
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
    assert unfold("T", [], [5, None], keys) == []
    assert list(unfold("T", ["a"], [5, None], keys)[0]) == [5, None]
    assert list(unfold("T", ["a"], [(5,), 6], keys)[0]) == [5, 6]
    assert [list(column) for column in unfold("T", ["a", "b"], [(1, 2), [3, 4]], keys)] == [[1, 3], [2, 4]]
    assert [list(column) for column in unfold("T", ["a", "b"], [(1, 2), {"b": 4}], keys)] == [[1, None], [2, 4]]


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
    ],
)
def test_a_value_of_another_shape_is_refused_by_name(names: list[str], value: Any, message: str) -> None:
    with pytest.raises(SinkError, match=message):
        unfold("T", names, [value], ["k"])
