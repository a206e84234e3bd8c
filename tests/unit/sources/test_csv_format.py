"""The format of a CSV file: what it may be, and what its texts are made into."""

from __future__ import annotations

from datetime import date, datetime, timezone

import pytest

from esault.errors import TopologyError
from esault.sources.csv_format import CsvFormat


def form(header=True, delimiter=",", quotechar='"', types=None, key=None):
    return CsvFormat(header, delimiter, quotechar, types, key)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"header": False}, "header=False: write True"),
        ({"header": "a,b"}, "header='a,b': write True"),
        ({"header": []}, "header=.*: write True"),
        ({"header": ["a", 1]}, "or a list of their names"),
        ({"delimiter": ",,"}, "delimiter=',,': write one character"),
        ({"delimiter": "\n"}, "write one character"),
        ({"delimiter": 1}, "write one character"),
        ({"quotechar": "''"}, "write one character, or None where no field is quoted"),
        ({"key": 1}, "key=1: write the name of a field"),
        ({"types": {"a": "int"}}, "write str, int, float, bool, Decimal, datetime, date, or a function of the text"),
        ({"types": {1: int}}, "types={1"),
        ({"header": ["a", "b", "a"]}, "two fields are named 'a'"),
        ({"header": ["a"], "key": "b"}, "there is no field 'b'; there are 'a'"),
        ({"header": ["a"], "types": {"b": int}}, "there is no field 'b'"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_write(options, said):
    with pytest.raises(TopologyError, match=said):
        form(**options)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (bool, " Yes", True),
        (bool, "0", False),
        (date, "2024-02-29", date(2024, 2, 29)),
        (datetime, "2024-02-29T12:00:00Z", datetime(2024, 2, 29, 12, tzinfo=timezone.utc)),
        (datetime, "2024-02-29 12:00", datetime(2024, 2, 29, 12)),
        (int, "7", 7),
    ],
)
def test_a_text_becomes_what_its_type_says(kind, text, value):
    ((place, name, made),) = form(types={"b": kind, "a": str}).places(["a", "b"])
    assert (place, name, made(text)) == (1, kind.__name__, value)


def test_what_is_neither_true_nor_false_is_no_bool():
    ((_, _, made),) = form(types={"a": bool}).places(["a"])
    with pytest.raises(ValueError, match="'maybe' is neither true nor false"):
        made("maybe")


def test_without_a_quotechar_quotes_are_texts():
    lines = ['"a;b";c']
    assert list(form(delimiter=";").records(lines)) == [["a;b", "c"]]
    assert list(form(delimiter=";", quotechar=None).records(lines)) == [['"a', 'b"', "c"]]
