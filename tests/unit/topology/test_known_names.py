"""What is not known is named, with the one that was meant and with all that there are."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from esault import Bolt, Topology, by_key
from esault.errors import TopologyError
from esault.sources import Items
from esault.topology.known_names import no_such
from esault.topology.stream import Stream
from esault.windows import TumblingWindow


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


@pytest.fixture
def stream():
    return Topology("t").spout("rows", Items([("a", 1)]))


def test_a_name_that_is_alike_is_offered():
    assert no_such("there is no unit", "cuont", ["rows", "count"]) == (
        "there is no unit 'cuont'; did you mean 'count'? There are: rows, count"
    )
    assert no_such("there is no unit", "xyz", ["rows", "count"]) == "there is no unit 'xyz'; there are: rows, count"


def test_an_unknown_keyword_of_a_bolt_is_named_with_its_unit_and_nothing_is_made(stream):
    with pytest.raises(
        TopologyError, match=r"unit 'count': bolt\(...\) takes no argument 'paralelism'; did you mean 'parallelism'\?"
    ):
        stream.bolt("count", Same, by_key(), paralelism=3)
    stream.bolt("count", Same, by_key(), parallelism=3)


def test_and_so_is_one_of_a_spout_a_window_and_a_bolt_of_several_streams(stream):
    with pytest.raises(TopologyError, match=r"unit 'rows': spout\(...\) takes no argument 'paralel'"):
        made: Any = Topology("t")
        made.spout("rows", Items([]), paralel=2)
    with pytest.raises(TopologyError, match=r"unit 'w': window\(...\) takes no argument 'sise'"):
        stream.window("w", Same, TumblingWindow(1), sise=2)
    with pytest.raises(
        TopologyError, match=r"unit 'both': bolt\(...\) takes no argument 'grouping'; there are: name, factory, inputs,"
    ):
        made = Topology("t")
        made.bolt(name="both", factory=Same, grouping=by_key())


def test_several_inputs_of_a_stream_are_for_the_topology(stream):
    with pytest.raises(
        TopologyError, match=r"unit 'both': bolt\(...\) of a stream .* topology.bolt\(name, ..., inputs="
    ):
        stream.bolt("both", Same, inputs={stream: by_key()})


def test_editors_see_the_arguments_as_before():
    assert "keys_in_memory" in inspect.signature(Stream.bolt).parameters
    assert "lateness" in inspect.signature(Topology.spout).parameters
