"""CRAA, its baselines and its filter decide as the reference of the bench does: two readings of the paper."""

from __future__ import annotations

import pytest

from bench.policies.craa.model import LOADS, Operator, Reference, run, trend, walk
from bench.policies.craa.runs import Steered
from esault.elasticity.estimators.kalman_filter import head_filter
from esault.elasticity.policies.craa import Craa
from esault.elasticity.policies.threshold import Threshold
from esault.elasticity.policy import make


@pytest.mark.parametrize(("kind", "reference"), [("trend", trend), ("walk", walk)])
def test_it_is_the_reference(kind, reference):
    one, other = head_filter(kind), reference()
    for rate in (1000, 2000, 5000, 6000, 5000, 2000) * 5:
        one.update(rate)
        other.update(rate)
        assert one.forecast(1) == pytest.approx(other.forecast(1))
        assert one.forecast(2) == pytest.approx(other.forecast(2))


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize(
    ("spec", "algorithm", "parameters"),
    [
        ("threshold", "TA", {}),
        ("kalman", "KPA", {}),
        ("kalman:filter=walk,rule=alpha", "KPA", {"kalman": walk, "rule": "alpha"}),
        ("craa:feedback=no", "CRAA", {"feedback": False}),
        ("craa:feedback=no,head=walk,tolerance=0.02", "CRAA", {"feedback": False, "kalman": walk, "tolerance": 0.02}),
        ("craa:feedback=no,judging=no", "CRAA", {"feedback": False, "judging": False}),
        ("craa:feedback=no,shrink=floor", "CRAA", {"feedback": False, "shrink": "floor"}),
    ],
)
def test_it_decides_as_the_reference_does(spec, algorithm, parameters, load):
    reference, ours = Reference(algorithm, **parameters), Steered(make(spec))
    windows, decisions = 0, 0

    class Both:
        avoided = reference.avoided

        def __call__(self, measured):
            nonlocal windows, decisions
            expected, wanted = reference(measured), ours(measured)
            windows += 1
            # until its first tuple came nobody can measure what a unit can process
            if windows > 5:
                assert wanted == expected
                decisions += len(expected[0])
            return expected

    run(LOADS[load], Both())
    assert decisions > 10


def test_the_same_model_with_the_policy_loses_nothing_behind_the_head():
    for load in LOADS.values():
        with_policy = run(load, Steered(Craa()), capped=True)
        assert with_policy.lost[1:] == [0, 0, 0, 0]
        assert all(lost > 0 for lost in run(load, Steered(Threshold()), capped=True).lost)


def test_feedback_in_the_model_caps_the_next_window():
    big = {o: Operator(10000, one) for o, one in (("O1", 500), ("O2", 400), ("O3", 300), ("O4", 200), ("O5", 100))}
    outcome = run(LOADS["jitter"], Steered(Craa(), big), 128, big, capped=True)
    assert outcome.lost[1:] == [0, 0, 0, 0]
