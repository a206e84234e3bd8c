"""A change that a death breaks off, or the end of the run, is told as what it is."""

from __future__ import annotations

import pytest
from counting import text, words

from esault.control.units.rescale_table import RescaleState
from esault.control.units.subscales import SUBSCALE_KEYS
from esault.messages.settings import Settings
from esault.testing import LocalRuntime, Sent


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


@pytest.mark.parametrize("exactly", [True, False])
@pytest.mark.parametrize("ends", ["by hand", "by itself"])
def test_the_end_of_a_run_waits_for_no_change_of_many_keys(exactly, ends, monkeypatch):
    monkeypatch.setattr("esault.control.units.subscales.keys_given", lambda unit, moves: 40 * SUBSCALE_KEYS)
    delivery = {"delivery": "eo", "checkpoint_every": 60.0} if exactly else {}
    local = LocalRuntime(words(), spouts={"lines": Sent()}, settings=Settings(**delivery))
    local.send("lines", *text(50))
    local.scale("count", 1)
    change = local.driver.units["count"].change
    local.run_until(lambda: change.moved >= 2)
    if ends == "by hand":
        local.drain()
    local.run_until_drained()
    assert len(change.later) > 20
    paused = exactly and ends == "by hand"
    assert local.driver.paused is paused
    assert len(local.landed("table")) == 400
    if not paused:
        assert (
            "rescale, dropped: all input of the unit had come before all keys had moved; it stays at 2 sub-units"
            in str(local.report())
        )
