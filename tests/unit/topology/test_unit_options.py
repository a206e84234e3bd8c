"""The keywords of public methods and the options values say the same: names, types, defaults, and what each means."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields

import pytest

from esault.topology.builder import Topology
from esault.topology.stream import Stream
from esault.topology.unit_options import UnitOptions, WindowOptions

UNIT = {f.name: f for f in fields(UnitOptions)}
WINDOW = {f.name: f for f in fields(WindowOptions) if f.name in ("lateness", "idle", "ahead")}
#: what only windows have that one's own bolts are given
PANES = {
    f.name: f
    for f in fields(WindowOptions)
    if f.name in ("by", "updates", "allowed_lateness", "early_count", "early_seconds", "last_pane", "ordered")
}
ALL = {**UNIT, **WINDOW, **PANES}
#: public method -> what is its own: its place in the topology, and keywords that no other has
OWN = {
    Stream.bolt: {"name", "factory", "grouping"},
    Stream.reduce: {"name", "function", "initial"},
    Stream.join_table: {"name", "table", "as_of", "time", "missing", "wait_most"},
    Stream.join_tables: {"name", "other", "kind"},
    Stream.window: {"name", "factory", "window", "time", "grouping", "split_hot_keys"},
    Stream.join: {"name", "other", "window", "within", "time", "kind", "keep"},
    Stream.pattern: {"name", "pattern", "time"},
    Topology.spout: {"name", "spout", "time", "after"},
    Topology.bolt: {"name", "factory", "inputs"},
    Topology.join: {"name", "sides", "window", "time", "kind", "keep"},
    Topology.window: {"name", "factory", "window", "inputs", "time"},
}


@pytest.mark.parametrize("method", OWN, ids=lambda method: method.__qualname__)
def test_keywords_have_the_types_and_defaults_of_the_options(method):
    keywords = dict(inspect.signature(method).parameters)
    del keywords["self"]
    options = {name: keyword for name, keyword in keywords.items() if name in ALL}
    assert set(keywords) - set(options) == OWN[method]
    for name, keyword in options.items():
        field = ALL[name]
        assert (keyword.annotation, keyword.default) == (field.type, field.default), name
        assert keyword.kind is keyword.KEYWORD_ONLY


def test_a_bolt_takes_all_options_and_says_what_each_means():
    assert set(UNIT) <= set(inspect.signature(Stream.bolt).parameters)
    assert set(UNIT) <= set(inspect.signature(Topology.bolt).parameters)
    described = inspect.getdoc(Stream.bolt)
    for name in UNIT:
        assert re.search(rf"^    {name}:|`{name}`", described, re.MULTILINE), name
    for name in PANES:
        assert re.search(
            rf"^    ({name}|early_count, {name}|{name}, early_seconds):", inspect.getdoc(Stream.window), re.MULTILINE
        ), name
    for name in WINDOW:
        assert re.search(rf"^    {name}:", inspect.getdoc(Stream.timed), re.MULTILINE), name
