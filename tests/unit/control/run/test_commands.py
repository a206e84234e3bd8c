"""`Driver.change`: split, merge or move one sub-unit, named or not."""

from __future__ import annotations

import pytest
from small_bolts import Total as Count

from esault import Topology, by_key
from esault.control.report.summary import snapshot
from esault.errors import UsageError
from esault.sources import Items
from esault.testing import LocalRuntime


def _started():
    t = Topology("counting")
    t.spout("rows", Items([])).bolt("count", Count, grouping=by_key())
    local = LocalRuntime(t, spouts={"rows": [(f"k{i % 50}", 1) for i in range(30_000)]})
    while not local.emitted("count"):
        local.step()
    return local


def test_the_last_sub_unit_is_meant_where_none_is_named():
    local = _started()
    unit = local.driver.units["count"]
    (first,) = unit.table.owners()
    local.driver.commands.change("count", "split", None, local.clock())
    local.wait_for_change("count")
    last = unit.table.owners()[-1]
    local.driver.commands.change("count", "move", None, local.clock())
    local.wait_for_change("count")
    assert unit.table.owners()[0] == first
    assert unit.table.owners()[-1] not in (first, last)
    local.driver.commands.change("count", "merge", None, local.clock())
    local.wait_for_change("count")
    assert unit.table.owners() == [first]
    assert [change.kind for change in unit.changes] == ["split", "move", "merge"]
    assert snapshot(local.driver, local.clock()).changes == 3
    local.run_until_drained()
    assert max(total for _, total in local.emitted("count")) == 600


def test_what_cannot_be_changed_is_said_in_one_line_and_nothing_changes():
    local = _started()
    now = local.clock()
    with pytest.raises(UsageError, match="there is no change 'melt'; there are: split, merge, move"):
        local.driver.commands.change("count", "melt", None, now)
    with pytest.raises(UsageError, match="there is no unit 'cuont'; did you mean 'count'. There are: rows, count"):
        local.driver.commands.change("cuont", "split", None, now)
    with pytest.raises(UsageError, match="unit 'count' has no sub-unit 99; it has 2"):
        local.driver.commands.change("count", "split", 99, now)
    assert local.driver.units["count"].change is None


@pytest.mark.parametrize("phase", ["building", "wiring", "beginning"])
def test_a_run_that_has_not_begun_or_goes_back_says_so(monkeypatch, phase):
    local = _started()
    monkeypatch.setattr(local.driver, "phase", phase)
    with pytest.raises(UsageError, match="counting starts, or goes back: .* cannot be changed yet; try again"):
        local.driver.commands.scale("count", 3, local.clock())
