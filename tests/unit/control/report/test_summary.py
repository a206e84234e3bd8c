"""Live views and the report say the same of a run that has ended."""

from __future__ import annotations

from esault import Topology
from esault.control.report.summary import snapshot
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime


def test_a_run_that_has_ended_gets_no_longer_while_its_processes_leave():
    t = Topology("short")
    t.spout("rows", Items([("a", 1), ("b", 2)])).sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    ended = local.driver.ended_at
    assert ended is not None
    later = snapshot(local.driver, ended + 5)
    assert (later.phase, later.seconds) == ("ended", local.report().seconds)
