"""JSON read by msgspec is what Python's own reader makes of it, or is left to that one."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esault.payload import json_decoder
from esault.payload.json_decoder import decode, quick_decoder


def read(function, text):
    """The value with all its types, or that there is none."""
    try:
        return repr(function(text))
    except (ValueError, RecursionError) as error:
        return type(error)


def same(text):
    quick = quick_decoder()
    assert quick is not None, "msgspec belongs to the tests"
    wanted, found = read(json.loads, text), read(quick, text)
    assert found == wanted or isinstance(found, type)  # refused, and so left to the other
    data = text.encode(errors="surrogatepass")
    assert read(decode, data) == wanted or isinstance(wanted, type) or "\\ud" in wanted


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
DIGITS = st.text("0123456789", min_size=1, max_size=30)
NUMBERS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+", "0"]),
    DIGITS,
    st.just("") | DIGITS.map(".{}".format),
    st.just("") | st.integers(-400, 400).map("e{}".format),
)


@given(VALUES, st.booleans())
def test_what_python_writes(value, plain):
    same(json.dumps(value, ensure_ascii=plain))


@given(NUMBERS)
@example("123456789012345678901234567890")
@example("1e400")
@example("-0")
@example("1.7976931348623159e308")
@example("2.4703282292062327e-324")
def test_numbers_of_any_length(text):
    same(text)


@given(VALUES, st.data())
def test_what_is_damaged_is_refused_as_before(value, data):
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, len(text)))
    same(
        text[:at]
        + data.draw(st.sampled_from(["", " ", ",", '"', "\\", "\\u12", "0", "-", "[", "}", "\n", "é"]))
        + text[end:]
    )


@pytest.mark.parametrize(
    "text",
    [
        *(
            "NaN",
            "-Infinity",
            '"\\ud800"',
            '"\\ud83d\\ude00"',
            '"\x00"',
            '"\t"',
            "[1,]",
            '{"a":1,}',
            "01",
            "+1",
            "1.",
            ".5",
        ),
        *(
            "1 2",
            "",
            " ",
            "  1 ",
            "\ufeff1",
            "\xa01",
            "tRue",
            '{"b":1,"a":1,"b":3}',
            "[" * 100_000,
            "[1]\x0c",
            "//x\n1",
        ),
    ],
)
def test_what_readers_of_json_differ_in(text):
    same(text)


def test_without_msgspec_pythons_reader_is_taken(monkeypatch):
    monkeypatch.setattr(json_decoder, "quick_decoder", lambda: None)
    assert decode(b'{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    with pytest.raises(UnicodeDecodeError):
        decode(b'"\xff"')


def test_where_it_is_not_installed_it_is_not_looked_for_twice(monkeypatch):
    asked = []
    monkeypatch.setattr(json_decoder, "find_spec", asked.append)
    quick_decoder.cache_clear()
    try:
        assert quick_decoder() is None and quick_decoder() is None
        assert asked == ["msgspec"]
    finally:
        quick_decoder.cache_clear()
