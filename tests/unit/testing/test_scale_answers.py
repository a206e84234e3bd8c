"""The last answer to `esault scale`, where all go back to a checkpoint before its change has ended."""

from __future__ import annotations

import random

import depth
import pytest
from counting import text, words

from esault.errors import UsageError
from esault.messages.settings import Settings
from esault.runtime.run_commands import Running, ScaleUnit
from esault.testing import LocalRuntime


def stepped(local, times):
    for _ in range(times):
        if local.driver.phase == "ended":
            return
        local.step() or local.wait()


@pytest.mark.parametrize("n", [1, 3, 5])
def test_it_comes_and_says_what_is(n):
    told = set()
    for seed in range(40 if depth.PROFILE == "deep" else 16):
        settings = Settings(delivery="eo", max_pending=4, root_rows=16)
        local = LocalRuntime(
            words(), spouts={"lines": text(300)}, seed=seed, settings=settings, parallelism={"count": 2}
        )
        order = random.Random(seed)
        while local.driver.phase != "running" or local.driver.busy:
            local.step() or local.wait()
        stepped(local, order.randrange(40))
        try:
            answer = ScaleUnit("count", n).carry_out(Running(local.driver, {}), local.now())
        except UsageError:
            continue
        stepped(local, order.choice((0, 1, 10, 60)))
        before = answer.then()
        if before is None and local.driver.phase == "running":
            local.kill(next(i for i in local.driver.units["split"].subs if local.lives(i)))
        while local.driver.phase != "ended" and answer.then() is None:
            local.step() or local.wait()
        last = answer.then()
        assert last is not None, seed
        width = local.driver.units["count"].width
        assert width == (2 if "error" in last else n), (seed, last)
        told.add(("cut off" if before is None else "done", "error" in last))
    assert ("cut off", False) in told
    assert ("cut off", True) in told or n < 2
