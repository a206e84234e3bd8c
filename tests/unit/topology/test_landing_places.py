"""Two sinks, one place."""

from __future__ import annotations

import pytest

from esault import Topology, TopologyError
from esault.sinks import JsonLines
from esault.sources import Items
from esault.topology.landing_places import places


def plan(one: str, other: str):
    t = Topology("t")
    stream = t.spout("rows", Items([("a", 1)]))
    stream.sink("all", JsonLines(one))
    stream.map(lambda value: value + 1).sink("more", JsonLines(other))
    return t.plan()


def test_two_sinks_on_one_file_are_refused_by_their_names_however_the_file_is_written():
    with pytest.raises(TopologyError, match=r"sinks '(all|more)' and '(all|more)' both write .*x\.jsonl; give each"):
        plan("out/x.jsonl", "./out/../out/x.jsonl")


def test_sinks_on_files_of_their_own_pass_and_say_where():
    assert places(plan("out/x.jsonl", "out/y.jsonl").sinks) == {"all": "out/x.jsonl", "more": "out/y.jsonl"}
