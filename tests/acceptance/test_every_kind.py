"""State and values of every kind, split, merged, moved, killed and restored under load: equal to a plain loop in one process."""

from __future__ import annotations

import json
import random
from collections import Counter

import depth
import pytest
from every_kind import KINDS, every_kind, expected
from test_checkpointed_runs import checkpoint_of

from esault.messages.settings import Settings
from esault.testing import LocalRuntime

N = 12_000


def seen(rows, n):
    """Each key once, with as many tuples as there were, and what it is."""
    want = expected(n)
    found = {key: (count, shown) for key, (count, shown) in rows}
    assert len(rows) == len(want)
    wrong = {key: (found[key][1], shown) for key, shown in want.items() if found[key][1] != shown}
    assert not wrong, next(iter(wrong.items()))
    assert sum(count for count, _ in found.values()) == n


def landed(path):
    return [(row["key"], row["value"]) for row in map(json.loads, path.read_text().splitlines())]


def test_in_one_process_with_and_without_bytes_between():
    for settings in (None, Settings()):
        local = LocalRuntime(every_kind(n=2000), settings=settings)
        local.run_until_drained()
        seen(local.emitted("see"), 2000)


@pytest.mark.parametrize("seed", depth.seeds(4))
@pytest.mark.parametrize("delivery", ["alo", "eo"])
def test_split_merged_moved_killed_and_restored_in_one_process(seed, delivery):
    local = LocalRuntime(every_kind(n=8000), seed=seed, settings=Settings(delivery=delivery, root_rows=64))
    draw, done = random.Random(seed), Counter()
    while local.driver.phase != "ended":
        for _ in range(draw.randrange(2, 6)):
            if not local.step():
                local.wait()
        units = local.driver.units.values()
        steady = all(u.steady and u.change is None and not any(r.leaving for r in u.subs.values()) for u in units)
        if (
            local.driver.phase != "running"
            or local.driver.busy
            or not steady
            or not local.driver.checkpoints.may_begin(units)
        ):
            continue
        unit = draw.choice(["grow", "see"])
        subs = local.sub_units(unit)
        what = draw.choice(
            ["split", "merge", "scale", "kill", "checkpoint"] if delivery == "eo" else ["split", "merge", "scale"]
        )
        if what == "split" and len(subs) < 5:
            local.split(unit, draw.choice(subs))
        elif what == "merge" and len(subs) > 1:
            local.merge(unit, draw.choice(subs))
        elif what == "scale":
            local.scale(unit, draw.randrange(1, 5))
        elif what == "kill":
            local.kill(draw.choice(subs))
        elif what == "checkpoint":
            local.checkpoint()
        else:
            continue
        done[what] += 1
    assert local.driver.failure is None
    assert sum(done.values()) > 3
    seen(local.emitted("see") if delivery == "alo" else [(row.key, row.value) for row in local.landed("out")], 8000)


@pytest.mark.slow
def test_on_processes_over_splits_merges_kills_and_a_resume_with_another_parallelism(command, tmp_path):
    more = {"n": N, "out": "out.jsonl", "gate": tmp_path / "gate", "rate": 4000.0}
    command.start("every_kind", "--checkpoint", "0.3", "--policy", "none", **more)
    command.running()
    command.scale("grow", 4)
    command.scale("see", 2)
    command.until(lambda: checkpoint_of(command) >= 2)
    command.processes("grow")[0].kill()
    command.until(lambda: command.status().get("restores") == 1)
    before = checkpoint_of(command)
    command.until(lambda: checkpoint_of(command) > before)
    command.processes("see")[0].kill()
    command.until(lambda: command.status().get("restores") == 2)
    command.scale("see", 1)
    command.scale("grow", 3)
    before = checkpoint_of(command)
    command.until(lambda: checkpoint_of(command) > before)
    command.process.kill()
    command.process.communicate()
    command.until(lambda: command.processes() == [])
    (tmp_path / "gate").touch()
    code, _, err = command.run(
        "every_kind", "--checkpoint", "0.3", "--resume", "--policy", "none", "--parallelism", "see=3", **more
    )
    assert code == 0, err
    seen(landed(tmp_path / "out.jsonl"), N)


@depth.deep("by processes, and state goes from host to host in test_hosts_come_and_go.py")
@pytest.mark.slow
def test_on_hosts_one_of_which_drains_so_that_all_of_its_state_moves(command, nodes, tmp_path):
    nodes.start("a", "b")
    more = {"n": N, "out": "out.jsonl", "gate": tmp_path / "gate", "rate": 4000.0}
    command.start("every_kind", *nodes.options, "--policy", "none", "--report", "r.json", **more)
    command.running()
    for sub_units in (4, 2, 3):
        command.scale("grow", sub_units)
    (tmp_path / "gate").touch()
    code, _, err = command.wait()
    assert code == 0, err
    report = json.loads((tmp_path / "r.json").read_text())
    assert set(report["units"]["grow"]["hosts"].values()) == {"a", "b"}
    assert [change["to"] for change in report["changes"]] == [4, 2, 3]
    seen(landed(tmp_path / "out.jsonl"), N)


def test_there_are_all_kinds():
    assert len(KINDS) >= 45
