"""A sink that raises when it commits ends the run with its own words, whenever that is."""

from __future__ import annotations

import pytest

from esault import Topology
from esault.messages.settings import Settings
from esault.sources import Items
from esault.testing import LocalRuntime, ManualClock
from esault.topology.sink import Sink


class Refuses(Sink):
    """Its table is wrong, which it finds when it commits."""

    def __init__(self):
        self.rows = []

    def write(self, rows):
        self.rows += rows

    def prepare(self, epoch):
        return len(self.rows)

    def commit(self, epoch, handle):
        raise ValueError("no such column")


@pytest.mark.parametrize("delivery", ["alo", "eo"])
def test_what_a_commit_raises_is_said_as_the_sinks_own(delivery):
    t = Topology("t")
    t.spout("rows", Items([("a", 1)])).sink("table", Refuses())
    local = LocalRuntime(t, real=True, clock=ManualClock(), settings=Settings(delivery=delivery))
    for _ in range(10_000):
        if local.driver.phase == "ended":
            break
        if not local.step():
            local.wait()
    assert "ValueError: no such column" in local.driver.failure
    assert "in commit" in local.driver.failure  # where it was raised
    assert "engine itself" not in local.driver.failure
