"""The counts of roots add up, also after a spout's process died."""

from __future__ import annotations

import pytest
from counting import text, words

from esault.messages.settings import Settings
from esault.testing import LocalRuntime


@pytest.mark.parametrize("seed", range(4))
def test_what_was_open_at_a_dead_spout_is_counted(seed):
    local = LocalRuntime(words(), spouts={"lines": text(3000)}, settings=Settings(root_rows=16), seed=seed)
    status = None
    while local.driver.phase != "ended" and (status is None or not status.rows.roots_open):
        local.step()
        local.clock.advance(0.01)  # reports come by the clock
        status = next(
            (s for i in local.sub_units("lines") if (s := local.driver.units["lines"].measurements.last(i))), None
        )
    assert status is not None
    known = status.rows.roots_open
    local.kill(local.sub_units("lines")[0])
    local.run_until_drained()
    roots = local.report().roots
    assert roots.lost >= known > 0
    assert roots.emitted == roots.acked + roots.lost
    assert (roots.open, roots.failed) == (0, 0)
    assert f"{roots.lost} open when their spout's process ended" in str(local.report())
