"""Exceptions of a user's whose text cannot be had."""

from __future__ import annotations

import pytest

from esault import Bolt, Topology, by_key, dead_letter, fail, skip
from esault.errors import TopologyFailed
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime


class Mute(Exception):
    def __str__(self):
        raise ValueError("no words")


class Refuses(Bolt):
    def process(self, key, value):
        if value:
            raise Mute
        self.emit(key, value)


def run(policy):
    t = Topology("mute")
    rows = t.spout("rows", Items([("a", 0), ("a", 1), ("b", 0)]))
    rows.bolt("refuses", Refuses, by_key(), on_error=policy).sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    return local


def test_it_is_an_error_as_any_other():
    assert len(run(skip()).emitted("refuses")) == 2
    (letter,) = run(dead_letter("dead.jsonl")).dead_letters
    assert letter["error"] == "Mute: <exception str() failed>"
    with pytest.raises(TopologyFailed, match=r"unit 'refuses', process, key 'a': Mute: <exception str\(\) failed>"):
        run(fail())
