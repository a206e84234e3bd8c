"""The policy orientstream over whole runs in virtual time: units change together, and nothing is lost."""

from __future__ import annotations

from collections import Counter

import pytest
from small_bolts import Total as Count
from steady import Steady

from esault import Bolt, Sink, Topology, by_key
from esault.testing import LocalRuntime

pytestmark = pytest.mark.slow  # not in `make quick`


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Landed(Sink):
    def write(self, rows):
        pass


def test_units_that_are_too_wide_shrink_together_and_nothing_is_lost():
    t = Topology("wide")
    line = t.spout("load", Steady(6.0, rate=300, keys=100)).bolt("pass", Pass, grouping=by_key(), parallelism=3)
    line.bolt("count", Count, grouping=by_key(), parallelism=4).sink("totals", Landed())
    local = LocalRuntime(t, policies={"": "orientstream:patience=1"})
    local.run_until_drained()
    seen = Counter()
    for key, total in local.emitted("count"):
        assert total == seen[key] + 1, key
        seen[key] = total
    report = local.report()
    assert sum(seen.values()) == report.units["load"].tuples_out > 1500
    assert not [d for d in report.decisions if d.outcome.startswith("failed")]
    begun = {d.unit: d.t for d in report.decisions if d.what.startswith("rescale")}
    assert set(begun) == {"pass", "count"}
    assert begun["pass"] == begun["count"]
    assert "windows are learnt" in report.decisions[0].reason
