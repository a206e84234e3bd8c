from __future__ import annotations

import json

import pytest

from esault.errors import TopologyError
from esault.sources.deserializers import deserializer


@pytest.mark.parametrize(
    "data",
    ["1", ' {"a": [1, null]} ', '{"a": 1}\n', '"\u00e9"', "NaN", "", " ", "1 2", "[1", "1,", "tru", "[1]x", "\t[]"],
)
def test_json_is_what_json_loads_makes_of_it(data):
    read = deserializer("Source", "value_deserializer", "json")
    try:
        should = json.loads(data)
    except ValueError as error:
        with pytest.raises(ValueError) as raised:
            read(data.encode())
        assert str(raised.value) == str(error)
    else:
        assert repr(read(data.encode())) == repr(should)


@pytest.mark.parametrize("wanted", ["xml", None, 3])
def test_what_is_no_deserializer_is_refused_with_what_to_write(wanted):
    with pytest.raises(
        TopologyError, match="Source: value_deserializer=.*write .*, a format, or a function from bytes"
    ):
        deserializer("Source", "value_deserializer", wanted, "a format, ")


def test_an_object_with_deserialize_is_one_and_so_is_a_function():
    class Upper:
        def deserialize(self, data):
            return data.decode().upper()

    assert deserializer("Source", "key", Upper())(b"a") == "A"
    assert deserializer("Source", "key", len)(b"abc") == 3
