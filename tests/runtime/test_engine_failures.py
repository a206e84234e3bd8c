"""A mistake in the engine ends the run, and says so: nothing waits for ever."""

from __future__ import annotations

import pytest

from esault import Topology, TopologyFailed, run
from esault.runtime.driver import driver_actor
from esault.sinks import Collect
from esault.sources import Items


class Mistake(Exception):
    pass


def _fail(*arguments: object) -> None:
    raise Mistake("of the engine")


def build() -> Topology:
    topology = Topology("items")
    topology.spout("items", Items([(number, number) for number in range(100)])).sink("rows", Collect())
    return topology


@pytest.mark.parametrize("name", ["report", "snapshot", "how_ended"])
def test_a_driver_that_fails_where_it_ends_tells_the_command(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(driver_actor, name, _fail)  # processes are forked from this one
    with pytest.raises(TopologyFailed, match="engine itself failed in DriverActor at (?s:.)*Mistake: of the engine"):
        run(build, parallelism={}, slots=2)
