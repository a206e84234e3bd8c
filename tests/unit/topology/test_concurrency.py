from __future__ import annotations

import functools
import re

import pytest

from esault import BatchBolt, Bolt, Topology, TopologyError, by_key
from esault.sources import Items
from esault.topology.concurrency import DEFAULT
from esault.topology.drawing import draw


class Waits(Bolt):
    async def process(self, key, value):
        pass


class Streams(Bolt):
    async def process_stream(self, stream, key, value):
        pass


class Same(Bolt):
    def process(self, key, value):
        pass


class Batches(BatchBolt):
    def process_batch(self, rows):
        pass


def planned(factory, **options):
    t = Topology("x")
    t.spout("rows", Items([])).bolt("x", factory, by_key(), **options)
    return t.plan().units["x"].concurrency


@pytest.mark.parametrize("factory", [Waits, Streams, functools.partial(Waits), lambda: Waits()])
def test_an_async_bolt_has_a_number_of_calls(factory):
    assert planned(factory) == DEFAULT
    assert planned(factory, concurrency=3) == 3


def test_any_other_has_none():
    assert planned(Same) is None
    assert planned(Batches) is None


@pytest.mark.parametrize(
    ("factory", "options", "said"),
    [
        (Same, {"concurrency": 8}, "concurrency=8 is for `async def process`, and Same.process does not wait"),
        (Batches, {"concurrency": 8}, "and Batches.process_batch does not wait"),
        (Waits, {"concurrency": 0}, "concurrency=0 must be a whole number of calls from 1 to 10000"),
        (Waits, {"concurrency": True}, "concurrency=True must be a whole number"),
        (Waits, {"concurrency": 1e3}, "concurrency=1000.0 must be a whole number"),
        (Waits, {"replicas": 2}, "a bolt with `async def process` has no replicas"),
    ],
)
def test_what_does_not_fit_is_refused(factory, options, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        planned(factory, **options)


def test_the_drawing_says_how_many():
    t = Topology("x")
    t.spout("rows", Items([])).bolt("x", Waits, by_key(), concurrency=7).map(str)
    assert "bolt Waits, parallelism 1 (1 or more), one object per key, concurrency 7" in draw(t.plan())
