"""Columns from Python types."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any, Optional

import pytest

from esault.errors import SinkError
from esault.sinks.landing.schema import parse_columns, schema_from_json, schema_to_json

ALL = {
    "a": str,
    "b": int,
    "c": float,
    "d": bool,
    "e": bytes,
    "f": datetime,
    "g": date,
    "h": Decimal,
    "i": Optional[str],  # noqa: UP045 - both spellings are allowed
    "j": int | None,
    "k": None | datetime,
}


def test_every_type_is_kept_and_comes_back() -> None:
    schema = parse_columns("T", ALL)
    assert [column.type for column in schema] == [
        *("string", "long", "double", "boolean", "binary", "timestamp", "date", "decimal(38,18)"),
        *("string", "long", "timestamp"),
    ]
    assert [column.nullable for column in schema] == [False] * 8 + [True] * 3
    assert schema_from_json(schema_to_json(schema)) == schema
    assert schema[9].python == "int | None"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "T: columns is empty; the key is the first column"),
        (["word"], "T: columns must be a dict such as"),
        ({"word": "str"}, "T: column 'word' has the type 'str'; possible are Decimal, bool, bytes, date, datetime,"),
        ({"word": list}, "T: column 'word' has the type <class 'list'>"),
        ({"word": list[str]}, r"T: column 'word' has the type list\[str\]"),
        ({"word": str | int}, r"T: column 'word' has the type str \| int"),
        ({"word": str | int | None}, r"T: column 'word' has the type str \| int \| None"),
        ({"word": None}, "T: column 'word' has the type None"),
        ({"": str}, "T: a column's name must be a non-empty str, got ''"),
        ({3: str}, "T: a column's name must be a non-empty str, got 3"),
        ({"Word": str, "word": str}, "T: columns 'Word' and 'word' differ in case only"),
        ({"_ID": str}, "T: the column name '_ID' is taken: _id, _time are added by eSault; rename it"),
    ],
)
def test_a_wrong_column_is_named(columns: Any, message: str) -> None:
    with pytest.raises(SinkError, match=message):
        parse_columns("T", columns, ("_id", "_time"))


def test_a_type_of_a_later_version_is_no_schema() -> None:
    with pytest.raises(ValueError, match="unknown column 'a': 'interval'"):
        schema_from_json([["a", "interval", False]])
