from __future__ import annotations

import json

import pytest

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
