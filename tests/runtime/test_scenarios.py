"""The same topologies on LocalRuntime and on real actors: the same rows land."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from esault.messages.settings import Settings
from esault.runtime.session import Session
from esault.testing import LocalRuntime
from esault.topology.locate import locate

pytestmark = pytest.mark.slow
PLACE = Path(__file__).with_name("scenarios.py")
SCENARIOS = [
    "keyed",
    "shuffled",
    "broadcast_to_all",
    "one_object",
    "half_keys",
    "own_grouping",
    "stepped",
    "reduced",
    "two_inputs",
    "beside_the_main_stream",
    "batched",
    "finished",
    "look_alikes",
    "all_values",
    "skipped",
    "three_deep",
]


class Silent:
    def line(self, mark, text):
        pass

    def notice(self, text):
        pass

    def update(self, snapshot):
        pass


def rows(of):
    return {name: Counter((repr(k), repr(v)) for k, v in found) for name, found in of.items()}


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_runtimes_land_the_same_rows(name):
    located = locate(f"{PLACE}:{name}")
    plan = located.build({}).plan()
    local = LocalRuntime(plan)
    local.run_until_drained()
    expected = rows({sink.name: [(r.key, r.value) for r in local.landed(sink.name)] for sink in plan.sinks})
    assert any(expected.values())
    report = Session(located, {}, view=Silent(), settings=Settings(ackers=len(name) % 2)).run()
    assert rows(report.collected) == expected
    assert report.roots.replayed == 0
    for unit, counts in local.report().units.items():
        assert report.units[unit].tuples_in == counts.tuples_in
        assert report.units[unit].tuples_out == counts.tuples_out
