"""Keys and values as the bytes that a broker takes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SinkError, TopologyError
from esault.sinks.serializers import serializer


def of(wanted):
    return serializer("KafkaSink", "value_serializer", wanted)


@dataclass
class Order:
    id: str
    paid: float


class Paid(NamedTuple):
    id: str


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=10,
)


class TestSerializers:
    @given(_JSON)
    def test_json_is_read_back_as_it_was(self, value):
        assert json.loads(of("json")(value)) == value

    def test_records_are_objects_with_their_fields(self):
        assert json.loads(of("json")(Order("a", 1.5))) == {"id": "a", "paid": 1.5}
        assert json.loads(of("json")(Paid("a"))) == {"id": "a"}

    def test_json_writes_what_json_has_no_word_for(self):
        assert json.loads(of("json")({"s": {2, 1}, "f": float("nan")})) == {"s": [1, 2], "f": "NaN"}

    def test_text_is_utf_8_and_whole_numbers_are_digits(self):
        assert of("text")("ä") == "ä".encode()
        assert of("text")(-12) == b"-12"

    def test_bytes_are_as_they_are(self):
        assert of("bytes")(bytearray(b"ab")) == b"ab"

    def test_a_function_or_an_object_may_do_it(self):
        class Upper:
            def serialize(self, value):
                return value.upper().encode()

        assert of(Upper())("a") == b"A"
        assert of(lambda value: None)("a") is None

    @pytest.mark.parametrize(
        ("wanted", "value"), [("text", 1.5), ("bytes", "a"), ("json", object()), (lambda value: "no bytes", 1)]
    )
    def test_what_has_no_form_is_refused_with_a_remedy(self, wanted, value):
        with pytest.raises(SinkError, match=r"take the serializer|map it|correct it"):
            of(wanted)(value)

    def test_a_serializer_that_there_is_not_is_refused(self):
        with pytest.raises(TopologyError, match='write "json"'):
            of("yaml")
