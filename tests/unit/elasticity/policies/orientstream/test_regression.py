"""Learners and ensembles: vectors reckoned from the paper (Wang et al. 2019, algorithm 2)."""

from __future__ import annotations

import math
import random
import sys

import depth
import pytest

from esault import UsageError
from esault.elasticity.policies.orientstream.bayes import NaiveBayes
from esault.elasticity.policies.orientstream.blend import Blend
from esault.elasticity.policies.orientstream.learners import bagging, check_river, learners, nearest, tree
from esault.elasticity.policies.orientstream.regression import ENSEMBLES, Ensemble, edk, od_keep, od_regression

pytestmark = pytest.mark.slow  # not in `make quick`

RECENT = (2.0, 4.0, 4.0, 8.0)


@pytest.mark.parametrize(
    ("predictions", "by_variance", "by_deviation"),
    [
        ((40, 42, 44, 70), [0, 1, 2, 3], [0, 1, 2]),
        ((0.40, 0.42, 0.44, 0.70), [0, 1, 2, 3], [0, 1, 2]),  # none would stay: all do
        ((50, 50, 50, 50), [0, 1, 2, 3], [0, 1, 2, 3]),
        ((49, 49, 51, 51), [0, 1, 2, 3], [0, 1, 2, 3]),
        ((10, 20, 30, 40), [0, 1, 2, 3], [1, 2]),
        ((0, 50, 50, 100), [0, 1, 2, 3], [1, 2]),
    ],
)
def test_who_stays(predictions, by_variance, by_deviation):
    assert od_keep(predictions, "var") == by_variance
    assert od_keep(predictions) == by_deviation


def test_ensembles_of_the_paper():
    predictions = (40, 42, 44, 70)
    assert edk(predictions, RECENT) == pytest.approx(44.6667, abs=1e-4)
    assert od_regression(predictions, RECENT) == pytest.approx(41.5, abs=1e-6)
    assert sum(predictions[i] for i in od_keep(predictions)) / 3 == pytest.approx(42, abs=1e-6)
    assert edk((0.40, 0.42, 0.44, 0.70), (1, 1, 1, 1)) == pytest.approx(0.49)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_the_deviation_keeps_the_same_whatever_the_unit(scale):
    order = random.Random(3)
    for _ in range(200):
        predictions = [order.uniform(0, 1) for _ in range(4)]
        assert od_keep([scale * p for p in predictions]) == od_keep(predictions)


class Says:
    """A learner that says the same always, and counts its lessons."""

    def __init__(self, value):
        self.value, self.lessons = value, 0

    def predict(self, x):
        return self.value

    def learn(self, x, y):
        self.lessons += 1


def test_an_ensemble_is_tested_then_trained_and_all_learn():
    four = [Says(v) for v in (40, 42, 44, 70)]
    od = Ensemble(four, "od")
    assert od.errors == [1.0] * 4
    assert od.learn({"a": 1.0}, 42.0).value == pytest.approx(42.0)  # equal weights before any error is known
    assert od.errors == [2, 0, 2, 28]
    assert [each.lessons for each in four] == [1, 1, 1, 1]
    assert od.predict({"a": 1.0}).value == pytest.approx(42.0, abs=1e-6)
    estimate = od.predict({"a": 1.0})
    assert (estimate.centre, estimate.deviation) == (49, pytest.approx(12.2066, abs=1e-4))


@pytest.mark.parametrize(("rule", "value"), [("mean", 49.0), ("best", 42.0), ("od", 42.0), ("edk", 42.0)])
def test_rules(rule, value):
    ensemble = Ensemble([Says(v) for v in (40, 42, 44, 70)], rule)
    for _ in range(5):
        ensemble.learn({"a": 1.0}, 42.0)
    assert ensemble.predict({"a": 1.0}).value == pytest.approx(value, abs=1e-6)


def test_errors_are_those_of_late():
    ensemble = Ensemble([Says(0.0), Says(10.0)], "best")
    for y in [0.0] * 300 + [10.0] * 200:
        ensemble.learn({"a": 1.0}, y)
    assert ensemble.errors == [10.0, 0.0]


def test_naive_bayes_of_the_vector():
    bayes = NaiveBayes(bins=2, low=0, high=100)
    for x, y in ((1, 20), (2, 30), (3, 40), (7, 60), (9, 80)):
        bayes.learn({"x": x}, y)
    assert bayes.predict({"x": 2}) == pytest.approx(30.0023, abs=1e-4)
    assert bayes.predict({"x": 5}) == pytest.approx(62.6908, abs=1e-4)
    assert bayes.predict({"x": 8}) == pytest.approx(70.0, abs=1e-4)


def test_naive_bayes_without_a_range_finds_it():
    order = random.Random(1)
    bayes = NaiveBayes()
    assert bayes.predict({"x": 1.0}) == 0.0
    for _ in range(800):
        x = order.uniform(0, 1)
        bayes.learn({"x": x, "noise": order.gauss(0, 1)}, 1000 * x)
    errors = [abs(bayes.predict({"x": x, "noise": 0.0}) - 1000 * x) for x in (0.1, 0.3, 0.5, 0.7, 0.9)]
    assert max(errors) < 80


def test_naive_bayes_far_from_all_it_knows_still_answers():
    bayes = NaiveBayes(low=0, high=1)
    for i in range(40):
        bayes.learn({"x": i % 4}, i % 2)
    assert 0 <= bayes.predict({"x": 1e9}) <= 1


def test_hoeffding_bound_is_that_of_the_paper():
    from river.tree import HoeffdingTreeRegressor

    bound = HoeffdingTreeRegressor._hoeffding_bound
    assert bound(1.0, 1e-7, 200) == pytest.approx(0.200737, abs=1e-6)
    assert bound(1.0, 0.05, 50) == pytest.approx(0.173082, abs=1e-6)


def test_nearest_neighbours_of_the_vector():
    near = nearest(neighbours=3, standardised=False)
    for a, b, y in ((1, 1, 10), (2, 2, 20), (3, 3, 30), (10, 10, 100)):
        near.learn({"a": a, "b": b}, y)
    assert near.predict({"a": 2, "b": 1}) == pytest.approx(20)


def test_nearest_neighbours_do_not_depend_on_units():
    def trained(scale):
        order, near = random.Random(5), nearest()
        for _ in range(300):
            a, b = order.random(), order.random()
            near.learn({"a": a, "b": scale * b}, b)
        return near.predict({"a": 0.5, "b": scale * 0.5})

    assert trained(1.0) == pytest.approx(trained(1e6), abs=1e-6)


@pytest.mark.parametrize("make", [tree, lambda: bagging(1)])
def test_trees_split_a_step(make):
    learner, order = make(), random.Random(2)
    for _ in range(2000):
        x = order.random()
        learner.learn({"x": x, "noise": order.random()}, 10.0 if x < 0.5 else 90.0)
    assert abs(learner.predict({"x": 0.2, "noise": 0.5}) - 10) < 5
    assert abs(learner.predict({"x": 0.8, "noise": 0.5}) - 90) < 5


@pytest.mark.parametrize("rule", depth.chosen(ENSEMBLES, tuple(ENSEMBLES)[::2]))
def test_every_ensemble_learns_and_repeats_itself(rule):
    def trained():
        order, ensemble = random.Random(7), Ensemble(learners(seed=4), rule)
        for _ in range(400):
            x = order.random()
            ensemble.learn({"x": x, "other": order.random()}, 50 * x + order.gauss(0, 1))
        return [ensemble.predict({"x": x, "other": 0.5}).value for x in (0.2, 0.8)]

    low, high = trained()
    assert (low, high) == tuple(trained())
    assert abs(low - 10) < 8
    assert abs(high - 40) < 8


def test_blend_is_not_taken_along_by_a_majority():
    blend, order = Blend(4), random.Random(9)
    for _ in range(200):
        x = {"x": order.random()}
        y = 10 * x["x"]
        blend.score(x, (y, y + 3, y + 3, y + order.gauss(0, 0.5)), y)
    assert blend.combine({"x": 0.5}, (5.0, 8.0, 8.0, 5.0)) == pytest.approx(5.0, abs=0.3)


def test_blend_is_not_taken_along_by_one_gone_wild():
    blend, order = Blend(4), random.Random(9)
    for _ in range(200):
        x = {"x": order.random()}
        y = 10 * x["x"]
        blend.score(x, [y + order.gauss(0, deviation) for deviation in (1.0, 1.2, 1.4, 1.6)], y)
    sound = blend.combine({"x": 0.5}, (5.0, 5.0, 5.0, 5.0))
    assert sound == pytest.approx(5.0, abs=0.3)
    for wild in range(4):
        said = [1e12 if i == wild else 5.0 for i in range(4)]
        assert blend.combine({"x": 0.5}, said) == pytest.approx(sound, abs=1.0)


def test_blend_follows_a_common_error_of_a_region():
    blend, order = Blend(2), random.Random(9)
    for i in range(600):
        x = {"x": order.random()}
        y = 10 * x["x"] + (4 if i >= 300 and x["x"] > 0.5 else 0)
        blend.score(x, (10 * x["x"], 10 * x["x"]), y)
    assert blend.combine({"x": 0.8}, (8.0, 8.0)) == pytest.approx(12.0, abs=0.8)
    assert blend.combine({"x": 0.2}, (2.0, 2.0)) == pytest.approx(2.0, abs=0.8)


def test_without_river_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.setitem(sys.modules, "river.stats", None)
    with pytest.raises(UsageError, match=r"pip install 'esault\[learn\]'"):
        check_river()


def test_nothing_is_an_answer_before_the_first_sample():
    for ensemble in (Ensemble(learners(1), rule) for rule in ENSEMBLES):
        assert math.isfinite(ensemble.predict({"x": 1.0}).value)
