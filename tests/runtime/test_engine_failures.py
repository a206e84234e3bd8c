"""A mistake in the engine ends the run, and says so: nothing waits for ever."""

from __future__ import annotations

import pytest

from esault import Bolt, Topology, TopologyFailed, by_key, run, skip
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


class Interrupts(Bolt):
    def process(self, key: int, value: int) -> None:
        if value == 50:
            raise KeyboardInterrupt("enough")
        self.emit(key, value)


def interrupted() -> Topology:
    topology = Topology("interrupted")
    items = topology.spout("items", Items([(number, number) for number in range(100)]))
    items.bolt("interrupts", Interrupts, by_key(), on_error=skip()).sink("rows", Collect())
    return topology


def test_a_keyboard_interrupt_of_user_code_is_no_failure_of_the_engine() -> None:
    with pytest.raises(TopologyFailed, match="unit 'interrupts' raised KeyboardInterrupt") as failed:
        run(interrupted, parallelism={}, slots=3)
    assert "the engine itself" not in str(failed.value)
    assert 'raise KeyboardInterrupt("enough")' in str(failed.value)
