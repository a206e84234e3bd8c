"""CRAA's bench: the reference model gives the numbers of the specification, and the simulator agrees with it."""

from __future__ import annotations

import json

import pytest

import bench.policies.craa.experiments as experiments
from bench.policies.craa.claims import claims, reduction
from bench.policies.craa.experiments import LARGE, experiment, lines
from bench.policies.craa.model import LOADS, Outcome, Reference, random_load, run, trend, walk
from bench.policies.craa.runs import Steered, mean, simulated
from esault.elasticity.policy import make


@pytest.mark.parametrize(
    ("load", "algorithm", "kalman", "lost", "used", "changes", "avoided"),
    [
        ("step", "TA", trend, [399000, 392000, 353450, 163500, 87000], [0.758, 0.719, 0.691, 0.828, 0.882],
         [120, 80, 98, 77, 76], [0] * 5),
        ("step", "KPA", walk, [451500, 322500, 311950, 108500, 94500], [0.736, 0.762, 0.704, 0.863, 0.896],
         [120, 99, 118, 97, 96], [0] * 5),
        ("step", "CRAA", trend, [391500, 0, 0, 0, 0], [0.668, 0.923, 0.930, 0.954, 0.993], [62, 81, 80, 78, 94],
         [39, 20, 19, 19, 19]),
        ("step", "CRAA", walk, [451500, 0, 0, 0, 0], [0.736, 0.539, 0.888, 0.927, 0.965], [120, 4, 42, 59, 58],
         [0, 77, 38, 38, 38]),
        ("jitter", "TA", trend, [92100, 40700, 40000, 41000, 68200], [0.902, 0.854, 0.900, 0.936, 0.984],
         [15, 12, 11, 19, 53], [0] * 5),
        ("jitter", "CRAA", trend, [92100, 0, 0, 0, 0], [0.824, 0.868, 0.996, 0.910, 0.941], [18, 12, 19, 1, 2],
         [0, 0, 0, 6, 6]),
        ("sine", "CRAA", trend, [23092, 0, 0, 0, 0], [0.935, 0.959, 0.976, 0.988, 0.998], [21, 26, 32, 32, 37],
         [0, 0, 0, 1, 1]),
        ("stage", "TA", trend, [59850, 58650, 59000, 58000, 93500], [0.920, 0.953, 0.934, 0.954, 0.982],
         [4, 6, 6, 13, 50], [0] * 5),
        ("stage", "CRAA", trend, [82300, 0, 0, 0, 0], [0.894, 0.974, 0.977, 0.977, 0.999], [11, 10, 10, 8, 14],
         [6, 0, 0, 0, 0]),
        ("stage", "CRAA", walk, [57350, 0, 0, 0, 0], [0.901, 0.883, 0.977, 0.973, 0.986], [6, 7, 7, 6, 14],
         [0, 8, 0, 0, 1]),
    ],
)  # fmt: skip
def test_the_reference_gives_the_table_of_the_specification(load, algorithm, kalman, lost, used, changes, avoided):
    outcome = run(LOADS[load], Reference(algorithm, kalman))
    assert (outcome.lost, outcome.used, outcome.changes, outcome.avoided) == (lost, used, changes, avoided)


def test_the_feedback_figures_of_the_specification():
    made = lambda **more: run(LOADS["jitter"], Reference("CRAA", operators=LARGE, **more), 128, LARGE)
    assert [sum(made(tau=tau).changes) for tau in (0.6, 0.7, 0.8, 0.9)] == [137, 138, 127, 142]
    assert sum(made(feedback=False).changes) == 137
    assert made().lost == [20000, 0, 0, 0, 0]
    theirs = run(LOADS["jitter"], Reference("TA", operators=LARGE), 128, LARGE)
    assert theirs.lost == [30000, 362500, 451500, 458500, 185000]


def test_what_is_left_out_shows():
    assert run(LOADS["jitter"], Reference("CRAA", judging=False)).changes[3:] == [15, 17]
    assert run(LOADS["step"], Reference("CRAA", shrink="floor")).lost[1:] == [28500, 10950, 0, 0]
    assert run(LOADS["step"], Reference("CRAA", walk, tolerance=0.02)).used[1] == 0.958


def test_a_random_load_is_its_seed():
    one, other = random_load(1, 1000, 5000), random_load(1, 1000, 5000)
    assert [one(k) for k in (3, 0, 1)] == [other(3), other(0), other(1)]
    assert all(1000 <= one(k) <= 5000 for k in range(100))


@pytest.mark.parametrize("spec", ["threshold", "kalman:filter=walk", "craa"])
def test_the_simulator_agrees_with_the_window_level_model(spec):
    ours = simulated(LOADS["step"], spec, 13)
    model = run(LOADS["step"], Steered(make(spec)), 13, capped=True)
    assert (ours.changes, ours.avoided, ours.slowed) == (model.changes, model.avoided, model.slowed)
    # within a window the simulator's flow is not even: buffers may be over for a moment that windows do not show
    assert ours.lost == pytest.approx(model.lost, rel=0.1, abs=60)
    assert ours.throughput == pytest.approx(model.throughput, rel=0.05)


def test_slowing_down_in_the_simulator():
    slowed = simulated(LOADS["jitter"], "craa", 14, operators=LARGE)
    assert slowed.slowed > 0
    assert simulated(LOADS["jitter"], "craa:feedback=no", 14, operators=LARGE).slowed == 0


def test_a_slow_down_holds_back_or_caps():
    """Exact: what was just produced stays. Live: the next window is capped, and what is held back shows a window later."""

    class Once:
        avoided = dict.fromkeys(LARGE, 0)

        def __init__(self):
            self.windows = []

        def __call__(self, measured):
            self.windows.append(measured)
            return {}, {"O1": 100.0} if len(self.windows) == 1 else {}

    arrived = {}
    for capped in (False, True):
        judge = Once()
        run(lambda k: 400.0, judge, 4, LARGE, capped)
        arrived[capped] = [w["O2"].arrivals for w in judge.windows]
    # it can process 500/s and did 400/s: slowed to 100/s it keeps all of them
    assert arrived[False] == [0.0, 0.0, 500.0, 500.0]
    assert arrived[True] == [0.0, 400.0, 100.0, 500.0]


def outcome(lost, changes=(1, 1, 1, 1, 1), avoided=(0,) * 5, **more):
    return Outcome(
        list(lost), more.pop("used", [0.9] * 5), list(changes), list(avoided), 0, more.pop("throughput", 100),
        more.pop("widths", {f"O{i}": [1] * 120 for i in range(1, 6)}),
    )  # fmt: skip


def test_reduction_is_the_mean_over_operators():
    assert reduction(outcome([50, 0, 0, 0, 0]), outcome([100, 10, 10, 10, 10])) == pytest.approx(0.9)
    # who loses where the other loses nothing has saved nothing
    assert reduction(outcome([50, 5, 0, 0, 0]), outcome([100, 0, 10, 10, 10])) == pytest.approx((0.5 - 1 + 3) / 5)


def verdicts(worse=None):
    """Of runs in which every claim holds, but for ours being `worse`."""
    rival = outcome([100] * 5, [9, 9, 30, 30, 30], used=[0.8] * 5, throughput=50)
    good = outcome([10, 0, 0, 0, 0], [1, 1, 2, 2, 2], [0, 0, 19, 19, 0])
    base = {"TA": rival, "KPA": rival, "KPA walk": rival}

    def data(ours):
        return {load: {**base, "CRAA": ours} for load in (*LOADS, "random to 10000")}

    feedback = {f"tau {t}": outcome([1] * 5, [1 if t == 0.8 else 2] * 5) for t in (0.6, 0.7, 0.8, 0.9)}
    feedback |= {"none": outcome([1] * 5, [2] * 5), "TA": rival, "KPA": rival}
    without = {"jitter, no judgement": rival, "step, printed floor": rival}
    both = lambda value: {"reference": value, "sim": value}
    pairs = {"sine": {"a": worse or good}}
    columns = {"reference": data(good), "sim": data(worse or good)}
    found = claims(120, columns, both(feedback), both(without), pairs)
    assert all(c["reference_holds"] for c in found if c["claim"] != "craa.thresholds")
    return {c["claim"].partition(".")[2]: c["reproduced"] for c in found}


def test_each_claim_can_fail():
    assert all(verdicts().values())
    flapping = {f"O{i}": [1, 2] * 60 for i in range(1, 6)}
    bad = verdicts(outcome([200, 99, 0, 0, 0], [40] * 5, [1] * 5, used=[0.5] * 5, throughput=10, widths=flapping))
    # feedback and the printed floor have runs of their own
    assert [name for name, holds in bad.items() if holds] == ["printed_floor", "feedback_tau", "feedback_loss"]


def test_lines_tell_tables_and_claims():
    one = outcome([1, 2, 3, 4, 5])
    row = {"policy": "x", **{k: v for k, v in vars(mean([one])).items() if k != "widths"}}
    result = {"paper": "p", "seconds": 5.0, "operators": ["O1"], "tables": [{"name": "t", "rows": [row]}], "claims": []}
    assert any("AC   1   1   1   1   1" in line for line in lines(result))


@pytest.mark.slow
def test_the_experiment_is_data_and_text(monkeypatch):
    monkeypatch.setattr(experiments, "FEW", 7)
    result = experiment(True, (1,))
    json.dumps(result)
    names = [(t["name"], t.get("column")) for t in result["tables"]]
    assert len(names) == len(set(names))
    assert {("step load", "reference"), ("step load", "sim"), ("step load, at once", "sim")} <= set(names)
    keys = {"claim", "text", "paper", "reference", "sim", "live", "counts_as", "reproduced"}
    assert all(keys <= claim.keys() for claim in result["claims"])
    said = lines(result)
    assert sum("counts as reproduced" in line for line in said) == len(result["claims"])
    assert any(line.startswith("step load, at once: sim") for line in said)
