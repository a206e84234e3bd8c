"""Rows from bodies of requests: what is a row, and what is refused before it can end the run."""

from __future__ import annotations

import json

import pytest

from esault.connectors.http.body import BodyError, BodyFormat
from esault.errors import TopologyError
from esault.routing.ring import check_key

JSON, LINES = "application/json", "application/x-ndjson"


def rows(body, form="json", key=None, kind=JSON):
    return BodyFormat("who", form, key).rows(body if isinstance(body, bytes) else json.dumps(body).encode(), kind)


@pytest.mark.parametrize(
    ("body", "kind", "values"),
    [
        ({"a": 1}, JSON, [{"a": 1}]),
        ([1, [2], None], JSON, [1, [2], None]),
        ([], JSON, []),
        (b'{"a": 1}\r\n\n  \n[2]\n"x\xe2\x80\xa8y"', LINES, [{"a": 1}, [2], "x\u2028y"]),
        (b"1\n2", "application/jsonl", [1, 2]),
    ],
)
def test_values_of_json(body, kind, values):
    assert rows(body, kind=kind) == [(None, value) for value in values]


@pytest.mark.parametrize(
    ("body", "values"),
    [
        (b"", []),
        (b"a\nb\r\nc", ["a", "b", "c"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        # ends of lines for a text of Python, and for no log
        ("a\u2028b\x0cc\x85d\x1ce\x0bf\n".encode(), ["a\u2028b\x0cc\x85d\x1ce\x0bf"]),
    ],
)
def test_lines_end_where_lines_of_files_do(body, values):
    assert rows(body, "lines") == [(None, value) for value in values]


@pytest.mark.parametrize("form", [str.encode, lambda body: body.decode().split(";")])
def test_a_function_of_ones_own_makes_the_values_or_is_to_blame(form):
    if form is str.encode:
        with pytest.raises(BodyError, match="the body cannot be read: TypeError"):
            rows(b"a;b", form)
    else:
        assert rows(b"a;b", form, key=str.upper) == [("A", "a"), ("B", "b")]


@pytest.mark.parametrize("key", ["a", "", 7, -(1 << 70), True, ["a", [1, "b"]], "ä"])
def test_keys_that_tuples_can_have(key):
    ((found, value),) = rows({"k": key}, key="k")
    assert value == {"k": key}
    check_key(found)


@pytest.mark.parametrize("key", [1.5, None, {"a": 1}, [None], ["a", 1.5], "\ud800", ["a\udfff"]])
def test_a_key_that_no_tuple_can_have_is_refused_and_names_its_row(key):
    """It would end the run, and any client could do that."""
    with pytest.raises(BodyError, match="^row 1: the key would be"):
        rows([{"k": "a"}, {"k": key}], key="k")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "^the body is no JSON: "),
        (b"", "^the body is no JSON: "),
        (b"\xff", "^the body (is no JSON|cannot be read): "),
        (b"[" * 100_000, "^the body cannot be read: RecursionError"),
    ],
)
def test_what_is_no_json_is_refused(body, said):
    with pytest.raises(BodyError, match=said):
        rows(body)


def test_a_line_that_is_no_json_is_named():
    with pytest.raises(BodyError, match="^line 3 is no JSON: "):
        rows(b"1\n\n{\n", kind=LINES)


@pytest.mark.parametrize("row", [{"b": 1}, 1, None, [1]])
def test_a_row_without_the_key_is_named(row):
    with pytest.raises(BodyError, match="^row 1 has no key 'k': "):
        rows([{"k": 1}, row], key="k")


@pytest.mark.parametrize(
    ("form", "key", "said"), [("xml", None, 'write "json", "lines"'), ("json", 1, "write a field's name")]
)
def test_forms_and_keys_that_are_none(form, key, said):
    with pytest.raises(TopologyError, match=said):
        BodyFormat("who", form, key)
