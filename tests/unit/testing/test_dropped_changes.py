"""A change that a death breaks off is told as what it is."""

from __future__ import annotations

from counting import text, words

from esault.control.units.rescale_table import RescaleState
from esault.testing import LocalRuntime


def test_a_change_that_was_dropped_does_not_look_done():
    local = LocalRuntime(words(), spouts={"lines": text(1500)})
    while len(local.emitted("count")) < 100:
        local.step()
    before = len(local.sub_units("count"))
    local.scale("count", before + 2)
    unit = local.driver.units["count"]
    assert unit.rescaling.state not in (RescaleState.IDLE, RescaleState.MOVING)
    victim = local.sub_units("count")[0]
    local.kill(victim)
    local.run_until_drained()
    report = local.report()
    change = report.changes[0]
    assert change.dropped == f"count/{victim} died"
    assert (change.before, change.after, change.moved_keys) == (before, before, 0)
    assert f"rescale, dropped: count/{victim} died; it stays at {before} sub-units (by hand: asked for)" in str(report)
    assert "keys moved" not in str(report)
