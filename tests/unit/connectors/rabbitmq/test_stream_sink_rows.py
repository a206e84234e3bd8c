"""Rows of which RabbitMQStreamSink can make no message that all can read."""

from __future__ import annotations

import pytest

from esault import SinkError
from esault.sinks import RabbitMQStreamSink
from esault.topology.context import Context
from esault.topology.sink import Row


def written(key, headers=None):
    sink = RabbitMQStreamSink("s", headers=lambda key, value: headers)
    sink.open(Context("out", run="r", lineage="r"))
    sink.write([Row(key, 1, 0.0)])


@pytest.mark.parametrize("key", [None, 7, "k" * 255, "é" * 127])
def test_keys_that_are_short_are_taken(key):
    written(key, {"n" * 255: "x"})


@pytest.mark.parametrize("key", ["k" * 256, "é" * 128, ("k" * 256, 1)])
def test_a_key_that_would_end_readers_is_refused(key):
    with pytest.raises(
        SinkError, match="stream 's': the key .* has more than 255 bytes, .* put the long one into the value"
    ):
        written(key)


def test_so_is_the_name_of_a_header():
    with pytest.raises(SinkError, match="the name of a header 'nnn"):
        written("k", {"n" * 256: "x"})
