"""Sinks hear of the beginning and of the end of a run once each, from the driver's process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from esault import Sink, Topology
from esault.flow.operators.user_error import UserError
from esault.runtime.driver.committer import Committer
from esault.runtime.driver.run_sinks import RunSinks
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.topology.context import Context


class Heard(Sink):
    def __init__(self, fails: bool = False) -> None:
        self.heard: list[Any] = []
        #: it fails from when the first run is over
        self.fails, self.to_fail = False, fails

    def write(self, rows):
        """Take them."""

    def begin(self, info):
        if self.fails:
            raise OSError("no such server")
        self.heard.append(("begin", info.run, info.resumed, info.lineage))

    def end(self, ok):
        self.heard.append(("end", ok))


def run_of(*sinks):
    """The core of a run that has drained, its sinks as the driver's actor calls them, and the driver's own copies of them."""
    t = Topology("heard")
    rows = t.spout("rows", Items([("a", 1)]))
    for number, sink in enumerate(sinks):
        rows.sink(f"out{number}", sink)
    local = LocalRuntime(t, real=True)
    local.run_until_drained()
    copies: list[Any] = [each.sink for each in local.driver.plan.sinks]
    for sink in copies:
        sink.heard.clear()
        sink.fails = sink.to_fail
    context = Context("heard", run="r1")
    spec: Any = SimpleNamespace(run="r1", kept=None, lineage="", from_savepoint=False, context=context)
    return local.driver, RunSinks(spec, Committer(False, lambda: None)), copies


def test_each_begins_once_however_often_it_is_tried_and_ends():
    core, sinks, (one, two) = run_of(Heard(), Heard())
    sinks.begin(core)
    sinks.begin(core)
    assert one.heard == two.heard == [("begin", "r1", False, "r1")]
    assert sinks.settle(core)
    sinks.end(core)
    assert one.heard == two.heard == [("begin", "r1", False, "r1"), ("end", True)]


def test_one_that_cannot_begin_is_told_by_name_and_those_before_it_still_end():
    core, sinks, (first, broken) = run_of(Heard(), Heard(fails=True))
    with pytest.raises(UserError, match="out1.*no such server"):
        sinks.begin(core)
    core.failure = "sink 'out1', begin: OSError: no such server"
    sinks.end(core)
    assert first.heard == [("begin", "r1", False, "r1"), ("end", False)]
    assert broken.heard == []


def test_what_a_dead_sub_unit_could_not_give_to_its_sinks_is_not_asked_for_where_none_died():
    core, sinks, (sink,) = run_of(Heard())
    assert not core.died_late
    assert sinks.settle(core)
    assert sink.heard == []
