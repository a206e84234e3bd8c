"""What changes units gets its turn between checkpoints, also where barriers wait behind more than one of them may take."""

from __future__ import annotations

import pytest

from esault import Bolt, Spout, Topology, UsageError, by_key
from esault.elasticity.action import Rescale
from esault.messages.settings import Settings
from esault.testing import LocalRuntime, ManualClock

EVERY = 1.0


class Flood(Spout):
    """Always more than can be processed."""

    count = 0

    def read(self, limit):
        rows = [(f"k{i % 200}", 1) for i in range(self.count, self.count + limit)]
        self.count += len(rows)
        return rows

    def position(self):
        return self.count

    def seek(self, position):
        self.count = position


class Grows:
    """One more sub-unit at each look, up to four."""

    probe_period = 0.1
    window = 0.5

    def decide(self, view):
        return [Rescale("overloaded", view.unit.width + 1)] if view.unit.width < 4 else ()


def overloaded(policies=None):
    clock = ManualClock()

    class Slow(Bolt):
        """5 ms a tuple."""

        total = 0

        def process(self, key, value):
            clock.advance(0.005)
            self.total += value

    t = Topology("overloaded")
    t.spout("load", Flood()).bolt("count", Slow, grouping=by_key(), max_parallelism=4)
    settings = Settings(delivery="eo", checkpoint_every=EVERY, max_pending=8, root_rows=64)
    return LocalRuntime(t, settings=settings, clock=clock, policies=policies)


def longest(local):
    return max((kept.completed_at - kept.begun_at for kept in local.kept), default=0.0)


@pytest.mark.slow
def test_an_overloaded_unit_grows_though_checkpoints_take_longer_than_from_one_to_the_next(name_policy):
    name_policy("grows", Grows)
    local = overloaded({"count": "grows"})
    local.run_for(40.0)
    assert longest(local) > EVERY  # else this shows nothing
    assert len(local.sub_units("count")) == 4
    assert len(local.kept) > 3


def test_a_wish_gets_its_turn_before_the_next_checkpoint():
    local = overloaded()
    while longest(local) <= EVERY:
        local.run_for(0.1)
    while local.driver.checkpoints.current is None:
        local.run_for(0.1)
    taken = local.driver.checkpoints.current.number
    for _ in range(1000):
        try:
            local.scale("count", 3)
            break
        except UsageError as error:
            assert "a checkpoint is being taken" in str(error)
        local.run_for(0.1)
    else:
        pytest.fail("no turn")
    assert local.driver.checkpoints.newest == taken
    local.wait_for_change("count")
    assert len(local.sub_units("count")) == 3
