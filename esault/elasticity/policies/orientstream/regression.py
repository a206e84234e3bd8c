"""From the predictions of several learners to one: ODRegression, EDKRegression as it is read here, and three others.

ODRegression (Wang et al. 2019, algorithm 2) leaves out, for one sample, the learners that are farther from the mean than the
spread; EDKRegression weighs the rest by the inverse of their recent error. The paper says "variance" for the spread; that has
the square of the target's unit, so the standard deviation is the default.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence

from esault.elasticity.policies.orientstream.blend import Blend
from esault.elasticity.policies.orientstream.learners import Learner
from esault.value_class import value_class

__all__ = ["ENSEMBLES", "SPREADS", "Ensemble", "Estimate", "edk", "od_keep", "od_regression"]

ENSEMBLES = ("od", "edk", "mean", "best", "blend")
SPREADS = ("std", "var")
#: errors over which a learner's recent mean is taken
RECENT = 200
#: keeps a weight finite
EPSILON = 1e-9
#: two equal predictions differ by less
SLACK = 1e-12


def od_keep(predictions: Sequence[float], spread: str = "std") -> list[int]:
    """Return the learners that stay: those at most one spread from the mean; all where none would."""
    mean = sum(predictions) / len(predictions)
    variance = sum((p - mean) ** 2 for p in predictions) / len(predictions)
    limit = variance if spread == "var" else math.sqrt(variance)
    keep = [i for i, p in enumerate(predictions) if not abs(p - mean) > limit + SLACK]
    return keep or list(range(len(predictions)))


def edk(predictions: Sequence[float], errors: Sequence[float], keep: Sequence[int] | None = None) -> float:
    """Mean weighted by the inverse of each learner's recent mean absolute error, of those in `keep`."""
    chosen = range(len(predictions)) if keep is None else keep
    weights = [1.0 / (errors[i] + EPSILON) for i in chosen]
    return sum(predictions[i] * w for i, w in zip(chosen, weights)) / sum(weights)


def od_regression(predictions: Sequence[float], errors: Sequence[float], spread: str = "std") -> float:
    """EDKRegression of the learners that `od_keep` leaves."""
    return edk(predictions, errors, od_keep(predictions, spread))


@value_class(frozen=True)
class Estimate:
    """The estimate of an ensemble for one sample, in the target's unit."""

    value: float
    predictions: tuple[float, ...]

    @property
    def centre(self) -> float:
        """Plain mean of the learners."""
        return sum(self.predictions) / len(self.predictions)

    @property
    def deviation(self) -> float:
        """Standard deviation of the learners, population form."""
        centre = self.centre
        return math.sqrt(sum((p - centre) ** 2 for p in self.predictions) / len(self.predictions))


class Ensemble:
    """Learners of one target and the rule that makes one number of theirs. All learn from every sample."""

    def __init__(self, learners: Sequence[Learner], rule: str = "od", spread: str = "std") -> None:
        """`rule`: one of ENSEMBLES; `spread`: one of SPREADS, for `od`."""
        self._learners = list(learners)
        self._rule = rule
        self._spread = spread
        self._errors: list[deque[float]] = [deque(maxlen=RECENT) for _ in learners]
        self._sums = [0.0 for _ in learners]
        self._blend = Blend(len(self._learners))
        self.samples = 0

    @property
    def errors(self) -> list[float]:
        """Mean absolute error of each learner of late; all 1 before the first sample, so that they weigh the same."""
        if not self.samples:
            return [1.0 for _ in self._errors]
        return [sum(kept) / len(kept) for kept in self._errors]

    def predict(self, x: Mapping[str, float]) -> Estimate:
        """The target for these features."""
        predictions = tuple(learner.predict(x) for learner in self._learners)
        return Estimate(self._combine(x, predictions), predictions)

    def learn(self, x: Mapping[str, float], y: float) -> Estimate:
        """One sample: it is predicted, then scored, then learnt. Returns what was predicted."""
        estimate = self.predict(x)
        for kept, prediction in zip(self._errors, estimate.predictions):
            kept.append(abs(y - prediction))
        if self._rule == "blend":
            self._blend.score(x, estimate.predictions, y)
        for learner in self._learners:
            learner.learn(x, y)
        self.samples += 1
        return estimate

    def _combine(self, x: Mapping[str, float], predictions: Sequence[float]) -> float:
        if self._rule == "mean":
            return sum(predictions) / len(predictions)
        if self._rule == "blend":
            return self._blend.combine(x, predictions)
        errors = self.errors
        if self._rule == "best":
            return predictions[min(range(len(errors)), key=errors.__getitem__)]
        if self._rule == "edk":
            return edk(predictions, errors)
        return od_regression(predictions, errors, self._spread)
