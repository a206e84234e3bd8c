"""What policies have learnt, kept from run to run: the second run knows the rhythm from its first second on."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from esault.elasticity.policies.auto import Auto
from esault.elasticity.scaling import Scaling
from esault.runtime.driver.past_run_file import keep_learnt, recall_learnt
from esault.sim import Model, Operator, Source, simulate
from esault.topology.plan import Plan, UnitPlan


def scaling(policy="auto"):
    plan = Plan("t", {"in": UnitPlan("in", "spout"), "work": UnitPlan("work", "bolt", parallelism=1)})
    return Scaling(plan, {"": policy}, 0.1, lambda text: None)


def on_off(t):
    return 1000.0 if t % 20 < 10 else 50.0


def run(policy, seconds=80.0):
    operator = Operator("work", ("in",), 0.004, 5, most=20, keys=[1.0] * 500)
    return simulate(Model([Source("in", on_off), operator]), policy, seconds=seconds)


def test_the_second_run_is_never_late(tmp_path):
    first = Auto()
    late = run(first).latency.below(0.1)
    assert late < 0.98  # it cannot know when the load comes back
    path, notices = tmp_path / "t.learnt.json", []
    before = scaling(first)
    keep_learnt(path, before, notices.append)
    kept = json.loads(path.read_text())
    kept["auto"]["sources"]["in"]["until"] -= 80.0  # virtual time begins at 0 again
    path.write_text(json.dumps(kept))
    second = Auto()
    recall_learnt(path, scaling(second), notices.append)
    assert run(second).latency.below(0.1) > 0.999
    assert not notices


def test_before_the_first_run_nothing_is_known(tmp_path):
    notices = []
    recall_learnt(tmp_path / "none.json", scaling(), notices.append)
    assert not notices


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"auto": 5}',
        '{"auto": {"sources": {"in": {}}}}',
        '{"auto": {"sources": {}, "idle": {"work": [7]}}}',
        '{"auto": {"sources": {}, "idle": {"work": [[Infinity, 1]]}}}',
        '{"auto": {"sources": {"in": {"until": 1, "history": {"bin_seconds": 0, "resolutions": [{"bins": [1, 2], "period": 1, "open": 0}]}}}}}',
    ],
)
def test_what_cannot_be_read_is_told_of_and_no_harm(tmp_path, text):
    path, notices = tmp_path / "t.learnt.json", []
    path.write_text(text)
    recall_learnt(path, scaling(), notices.append)
    assert len(notices) == 1
    assert str(path) in notices[0]


def test_what_cannot_be_written_is_told_of(tmp_path):
    notices = []
    keep_learnt(tmp_path / "missing" / "t.json", scaling(), notices.append)
    assert "the next run begins without it" in notices[0]


def test_policies_that_learn_nothing_leave_no_file(tmp_path):
    path = tmp_path / "t.learnt.json"
    keep_learnt(path, SimpleNamespace(learnt=dict), lambda text: None)
    keep_learnt(path, scaling("none"), lambda text: None)
    assert not path.exists()
