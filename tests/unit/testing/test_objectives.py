"""Latency objectives of whole topologies: tuples that come to their end in a chained bolt count too."""

from __future__ import annotations

import pytest

from esault import Bolt, Topology, shuffle
from esault.elasticity.measured import latencies
from esault.messages.settings import Settings
from esault.sources import Items
from esault.testing import LocalRuntime


class Double(Bolt):
    def process(self, key, value):
        self.emit(key, 2 * value)


def topology():
    t = Topology("doubled")
    doubled = t.spout("numbers", Items([(None, number) for number in range(50)])).bolt("double", Double, shuffle())
    doubled.bolt("again", Double, shuffle())
    return t


@pytest.mark.parametrize("chaining", [True, False])
def test_all_tuples_count_end_to_end(chaining):
    local = LocalRuntime(topology, settings=Settings(chaining=chaining))
    assert bool(local.plan.chained) is chaining
    local.run_until_drained()
    assert latencies(local.driver.units, "").count == 50
