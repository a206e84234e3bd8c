"""A bolt that is to tick and defines no `tick`: `check` finds it."""

from __future__ import annotations

import pytest

from esault import BatchBolt, Bolt, Topology, by_key
from esault.sources import Items
from esault.topology.doubts import unused_ticks


class Misspelt(Bolt):
    def process(self, key, value):
        self.emit(key, value)

    def ticks(self, now):
        self.emit("now", now)


class Batches(BatchBolt):
    def process_batch(self, rows):
        self.emit_batch(rows)


class Ticks(Misspelt):
    def tick(self, now):
        self.ticks(now)


def plan(bolt, **options):
    t = Topology("t")
    t.spout("in", Items([("a", 1)])).bolt("b", bolt, grouping=by_key(), **options)
    return t.plan()


@pytest.mark.parametrize("bolt", [Misspelt, Batches])
def test_a_tick_that_nothing_defines_is_said(bolt):
    (said,) = unused_ticks(plan(bolt, tick_every=1))
    assert said.startswith(f"unit 'b': tick_every=1 says how often tick(self, now) is called, and {bolt.__name__} ")


def test_one_that_is_defined_or_not_asked_for_is_not_said():
    assert unused_ticks(plan(Ticks, tick_every=1)) == unused_ticks(plan(Misspelt)) == []
