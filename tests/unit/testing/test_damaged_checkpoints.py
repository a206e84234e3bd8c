"""A checkpoint whose piece is damaged under a living run: the one before is used, and no table says more than is known."""

from __future__ import annotations

from collections import Counter

import depth
import pytest
from commands_asked import checkpoint
from counting import text, totals, words

from esault import TopologyFailed
from esault.control.report.summary import may_repeat
from esault.messages.settings import Settings
from esault.testing import LocalRuntime

LINES = 1000


def until(local, number):
    while local.driver.checkpoints.newest < number:
        checkpoint(local)
        for _ in range(30):
            if not local.step():
                local.wait()
        assert local.driver.phase == "running", local.driver.failure


def run(tmp_path, seed, **options):
    settings = Settings(delivery="eo", max_pending=2, root_rows=2, reload_state=True)
    return LocalRuntime(
        words(), spouts={"lines": text(LINES)}, seed=seed, settings=settings, state_dir=tmp_path, **options
    )


@pytest.mark.parametrize("seed", depth.seeds(4))
def test_all_go_back_to_the_one_before_and_the_table_is_not_called_distinct(tmp_path, seed):
    local = run(tmp_path, seed)
    until(local, 3)
    assert not may_repeat(local.driver)
    for piece in tmp_path.glob("00000003-*.state"):
        piece.write_bytes(piece.read_bytes()[:-30])
    local.kill(local.sub_units("count")[0])
    local.run_until_drained()
    told = [restored.number for restored in local.driver.restores.all]
    assert told == [2]
    assert may_repeat(local.driver)
    assert local.driver.completed.repeats
    landed = Counter(row.key for row in local.landed("table"))
    values = {}
    for row in local.landed("table"):
        values.setdefault(row.key, set()).add(row.value)
    assert {key: len(each) for key, each in values.items()} == totals(text(LINES))
    assert sum(landed.values()) >= sum(totals(text(LINES)).values())


def test_where_none_is_whole_the_run_ends_and_says_so(tmp_path):
    local = run(tmp_path, 1)
    until(local, 3)
    for piece in tmp_path.glob("*.state"):
        piece.write_bytes(piece.read_bytes()[:-30])
    local.kill(local.sub_units("count")[0])
    with pytest.raises(TopologyFailed, match="no checkpoint in .* is whole"):
        local.run_until_drained()
