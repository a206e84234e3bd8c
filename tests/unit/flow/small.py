"""Small topologies for tests of what the data path does."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime


class Echo(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def through(rows, bolt=Echo, *, grouping=None, parallelism=1, **options):
    """The rows through one bolt into a sink."""
    t = Topology("small")
    out = t.spout("rows", Items(rows)).bolt(
        "worker", bolt, grouping=grouping or by_key(), parallelism=parallelism, **options
    )
    out.sink("out", Collect())
    return t


def run(topology, seconds=None, **options):
    local = LocalRuntime(topology, **options)
    if seconds is None:
        local.run_until_drained()
    else:
        local.run_for(seconds)
    return local
