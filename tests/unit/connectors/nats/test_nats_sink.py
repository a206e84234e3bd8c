"""Headers of messages that NatsSink makes of rows, and those that cannot be sent."""

from __future__ import annotations

import pytest

from esault import SinkError, TopologyError
from esault.sinks import NatsSink
from esault.topology.context import Context
from esault.topology.sink import Row


def headers(found, **options):
    sink = NatsSink("S", "s.b", headers=lambda key, value: found, **options)
    sink.open(Context("out", run="r", lineage="r"))
    sink.write([Row("ä", 1, 0.0, "id")])
    return sink._messages[0][3]


def test_a_function_gives_headers_or_none():
    assert headers({"Source": "é", "x-2": ""}, key_header="Key") == {"Key": "ä", "Source": "é", "x-2": ""}
    assert headers(None) is None and headers(None, key_header="Key") == {"Key": "ä"}


@pytest.mark.parametrize(
    "found", [{"a": 1}, {"a": None}, {"a b": "x"}, {"a:b": "x"}, {"": "x"}, {1: "x"}, {"a": "\ud800"}, "a"]
)
def test_what_is_no_header_is_refused_before_the_checkpoint(found):
    with pytest.raises(
        SinkError, match="NatsSink, stream 'S': headers of key 'ä': .* texts by names without blanks and colons"
    ):
        headers(found)


def test_a_name_that_no_header_has_is_refused_at_once():
    with pytest.raises(TopologyError, match="key_header='a b': write the name of a header"):
        NatsSink("S", "s.b", key_header="a b")
