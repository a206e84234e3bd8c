"""The learner trial: four learners and their ensembles on synthetic samples, tested then trained.

Each sample is one window of a query under some configuration: five features, and its use of processors and memory in percent,
with noise and one drift at half time. Three variants: sound learners, a Hoeffding tree that diverges, naive Bayes with gross errors.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from esault.elasticity.policies.orientstream.bayes import NaiveBayes
from esault.elasticity.policies.orientstream.learners import LEARNERS, Learner, bagging, nearest, tree
from esault.elasticity.policies.orientstream.regression import Ensemble

__all__ = ["QUERIES", "TARGETS", "VARIANTS", "WindowSample", "errors", "over_seeds", "samples", "trial"]

#: work per tuple, against traffic monitoring
QUERIES = {"TM": 1.0, "WC": 0.7, "Q3": 1.6}
TARGETS = ("cpu", "memory")
VARIANTS = ("sound learners", "a tree that diverges", "naive Bayes with 5 % gross errors")
#: what is left out of the scores, while learners know nothing
SKIPPED = 100
#: name -> rule and spread
ENSEMBLES = {
    "plain mean": ("mean", "std"),
    "EDK": ("edk", "std"),
    "OD, deviation": ("od", "std"),
    "OD, variance": ("od", "var"),
    "blend": ("blend", "std"),
}


class WindowSample(NamedTuple):
    """One window: features, and what was used in percent."""

    x: dict[str, float]
    cpu: float
    memory: float


def samples(query: str, n: int, seed: int) -> list[WindowSample]:
    """`n` samples; the same for the same seed."""
    order = random.Random(f"{query} {seed}")
    rate = order.uniform(5e3, 6e4)
    found = []
    for i in range(n):
        jump = order.random() < 0.3
        rate = order.uniform(5e3, 6e4) if jump else min(6e4, max(5e3, rate * math.exp(order.gauss(0, 0.25))))
        one, two = order.choice((1, 2, 4, 8, 16)), order.choice((1, 2, 4, 8, 16))
        memory, window = order.choice((1, 2, 4, 8)), order.uniform(30, 120)
        x = rate * QUERIES[query] * (1.3 if i >= n // 2 else 1.0) / 6e4
        crowded = 4 if x > 0.1 * one else 0
        cpu = 100 * (1 - math.exp(-1.2 * x)) + 0.6 * (one + two) + crowded + order.gauss(0, 2.5)
        used = 8 + 5 * memory + 0.5 * (one + two) + 12 * x * window / 120 + order.gauss(0, 1.5)
        features = {"rate": rate / 1e4, "p1": one, "p2": two, "memory": memory, "window": window / 30}
        found.append(WindowSample(features, min(100.0, max(0.0, cpu)), used))
    return found


class _Recorded:
    """A learner whose predictions were made before, so that several ensembles see the very same ones."""

    def __init__(self, predictions: Iterator[float]) -> None:
        self._predictions = predictions

    def predict(self, x: Mapping[str, float]) -> float:
        return next(self._predictions)

    def learn(self, x: Mapping[str, float], y: float) -> None:
        """It has learnt already."""


def trial(query: str, target: str, n: int, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """variant -> learner or ensemble -> MAE in percentage points and RAE as a ratio."""
    rows = [(s.x, getattr(s, target)) for s in samples(query, n, seed)]
    made: list[Learner] = [NaiveBayes(), tree(), bagging(seed), nearest(), tree("model")]
    predicted: list[list[float]] = [[] for _ in made]
    for x, y in rows:
        for learner, kept in zip(made, predicted):
            kept.append(learner.predict(x))
            learner.learn(x, y)
    bayes, mean_tree, bagged, near, linear_tree = predicted
    order = random.Random(seed)
    gross = [order.uniform(0, 100) if order.random() < 0.05 else p for p in bayes]
    variants = ([bayes, mean_tree], [bayes, linear_tree], [gross, mean_tree])
    return {name: _scored(rows, [*pair, bagged, near]) for name, pair in zip(VARIANTS, variants)}


def _scored(rows: Sequence[tuple[dict[str, float], float]], four: list[list[float]]) -> dict[str, dict[str, float]]:
    truth = [y for _, y in rows[SKIPPED:]]
    scores = {name: errors(truth, values[SKIPPED:]) for name, values in zip(LEARNERS, four)}
    for name, (rule, spread) in ENSEMBLES.items():
        ensemble = Ensemble([_Recorded(iter(values)) for values in four], rule, spread)
        values = [ensemble.learn(x, y).value for x, y in rows]
        scores[name] = errors(truth, values[SKIPPED:])
    return scores


def errors(truth: Sequence[float], predicted: Sequence[float]) -> dict[str, float]:
    """Mean absolute error, and the sum of absolute errors over that of the truth's deviations from its mean."""
    absolute = sum(abs(y - p) for y, p in zip(truth, predicted))
    mean = sum(truth) / len(truth)
    return {"mae": absolute / len(truth), "rae": absolute / sum(abs(y - mean) for y in truth)}


def over_seeds(n: int, seeds: Sequence[int], queries: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each query, target, variant and model: means over the seeds."""
    rows = []
    for query in queries:
        for target in TARGETS:
            runs = [trial(query, target, n, seed) for seed in seeds]
            for variant in VARIANTS:
                for model in runs[0][variant]:
                    row: dict[str, Any] = {"query": query, "target": target, "variant": variant, "model": model}
                    for figure in ("mae", "rae"):
                        row[figure] = sum(run[variant][model][figure] for run in runs) / len(runs)
                    rows.append(row)
    return rows
