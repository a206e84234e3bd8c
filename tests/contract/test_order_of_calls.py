"""The engine calls the hooks of spouts and sinks in an order that they may rely on, whatever happens to a run."""

from __future__ import annotations

import importlib.util
import random
from collections import Counter
from pathlib import Path

import depth
import pytest
from commands_asked import checkpoint, some_change

from esault import TopologyFailed
from esault.messages.settings import Settings
from esault.testing import LocalRuntime, ManualClock
from esault.topology.locate import locate

PLACE = Path(__file__).with_name("recorded.py")
_spec = importlib.util.spec_from_file_location("recorded", PLACE)
recorded = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(recorded)

#: runs in which nobody dies and in which some do, with few changes and with many
DRAINING = depth.chosen(range(6), (3,))
#: runs that are ended early, and late
GOING_ON = depth.chosen(range(8), (2, 5))
#: hooks that a spout has not, or that are never asked, since what stands for it knows
NOT_ASKED = {("stream", "position"), ("stream", "commit"), ("paced", "due"), ("paced", "lag")}
#: all with all in the deep run; in others each hook of each spout in one of the two, in turns
FAILING = [
    (hook, spout, delivery)
    for i, hook in enumerate(["read", "position", "due", "commit", "progress", "lag", "close"])
    for j, spout in enumerate(recorded.SPOUTS)
    for k, delivery in enumerate(["alo", "eo"])
    if (spout, hook) not in NOT_ASKED and (depth.PROFILE == "deep" or (i + j) % 2 == k)
]


def started(folder, seed, delivery, **options):
    located = locate(f"{PLACE}:topology")
    params = {"said": str(folder / "said.jsonl"), **options.pop("params", {})}
    state = None
    if delivery == "eo":
        state = folder / "state"
        state.mkdir(exist_ok=True)
    return LocalRuntime(
        lambda: located.build(params).plan(),
        seed=seed,
        clock=ManualClock(),
        real=True,
        settings=Settings(delivery=delivery, max_pending=4, root_rows=16),
        state_dir=state,
        **options,
    )


def shaken(local, order, kills=0, stop_after=None):
    """Run to the end, with checkpoints, changes and deaths; `stop_after` so many steps it is told to end."""
    exactly, steps = local.driver.settings.delivery == "eo", 0
    while local.driver.phase != "ended":
        steps += 1
        if steps == stop_after:
            local.drain()
        driver = local.driver
        if order.random() < 0.05:
            if exactly and order.random() < 0.7:
                checkpoint(local)
            else:
                some_change(local, order, ["count"])
        if kills and driver.phase == "running" and order.random() < 0.03 and driver.restores.in_vain < 3:
            living = [i for unit in driver.units.values() for i in unit.subs if local.lives(i)]
            if living:
                local.kill(order.choice(living))
                kills -= 1
        if not local.step():
            local.wait()


def hooks(said):
    return Counter((kind, call["hook"]) for (kind, _), calls in recorded.of_each(said).items() for call in calls)


@pytest.mark.parametrize("delivery", ["alo", "eo", "none"])
@pytest.mark.parametrize("spout", list(recorded.SPOUTS))
def test_in_a_run_that_drains_whoever_dies(done_in_all, spout, delivery, tmp_path):
    for seed in DRAINING:
        folder = tmp_path / str(seed)
        folder.mkdir()
        local = started(folder, seed, delivery, params={"spout": spout})
        shaken(local, random.Random(seed), kills=seed % 4)
        assert local.driver.failure is None
        done_in_all.of(local, "death", "change", *(["checkpoint"] if delivery == "eo" else []))
        said = folder / "said.jsonl"
        assert recorded.illegal(said) == []
        if local.driver.deaths:
            continue
        called = hooks(said)
        kind = {"stream": "Stream", "queue": "Queue"}.get(spout, "Numbers")
        own = () if spout == "paced" else ("lag", "due")  # Paced knows these itself
        assert all(called[kind, hook] for hook in ("open", "read", "progress", "close", *own))
        assert all(called["Rows", hook] for hook in ("begin", "open", "write", "prepare", "commit", "close"))
        if kind != "Stream":
            assert called[kind, "commit"]


@pytest.mark.parametrize("spout", list(recorded.SPOUTS))
@pytest.mark.parametrize("delivery", ["alo", "eo"])
def test_in_a_run_that_is_ended_by_hand_and_goes_on(done, spout, delivery, tmp_path):
    for seed in GOING_ON:
        folder, order, options = tmp_path / str(seed), random.Random(seed), {"params": {"spout": spout}}
        folder.mkdir()
        said = folder / "said.jsonl"
        local = started(folder, seed, delivery, **options)
        shaken(local, order, seed % 3, stop_after=1 + 50 * seed)
        assert recorded.illegal(said) == []
        done.of(local, *(["paused", "restored", "checkpoint", "death"] if delivery == "eo" else []))
        if local.report().ended == "paused" and local.driver.completed is not None:
            newest = local.driver.checkpoints.newest
            local = started(folder, seed + 1, delivery, kept=local.driver.completed, last_number=newest, **options)
            shaken(local, order, 2)
            assert local.driver.failure is None
            assert recorded.illegal(said) == []
            done.of(local)
            done.counts["paused"] += 1
            done.counts["restored"] += len(local.report().restores)


@pytest.mark.parametrize(("hook", "spout", "delivery"), FAILING)
def test_a_hook_that_raises_is_named_and_nothing_follows_but_close(hook, spout, delivery, tmp_path, capsys):
    local = started(tmp_path, 1, delivery, params={"spout": spout, "fails": hook})
    if hook == "close":
        shaken(local, random.Random(1))
        assert local.driver.failure is None
        assert "unit 'numbers', close: " in capsys.readouterr().err
    else:
        with pytest.raises(TopologyFailed, match=f"(?s)unit 'numbers', .*: ValueError: {hook} fails"):
            order = random.Random(1)
            shaken(local, order)
            local.run_until_drained()
    assert recorded.illegal(tmp_path / "said.jsonl") == []
    (spouts,) = [calls for (kind, _), calls in recorded.of_each(tmp_path / "said.jsonl").items() if kind != "Rows"]
    behind = [call["hook"] for call in spouts[[call["hook"] for call in spouts].index("open") :]]
    if hook != "close":
        fatal = max(i for i, each in enumerate(behind) if each == hook)
        assert set(behind[fatal + 1 :]) <= {"close"}
