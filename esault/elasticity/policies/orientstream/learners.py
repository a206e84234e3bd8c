"""The four learners of OrientStream+ (Wang et al. 2019), each behind the same two calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from esault.elasticity.policies.orientstream.bayes import NaiveBayes
from esault.errors import UsageError

__all__ = ["LEARNERS", "Learner", "check_river", "learners"]

#: in the order of the paper's P_1 .. P_4
LEARNERS = ("naive Bayes", "Hoeffding tree", "online bagging", "nearest neighbours")


class Learner(Protocol):
    """Learns one target, sample by sample. Features by name, all samples with the same names."""

    def predict(self, x: Mapping[str, float]) -> float:
        """The target for these features; 0 before the first sample."""
        ...

    def learn(self, x: Mapping[str, float], y: float) -> None:
        """One sample."""
        ...


def check_river() -> None:
    """Raises UsageError when river is not installed."""
    try:
        import river.stats  # noqa: F401
    except ImportError:
        raise UsageError(
            "policy 'orientstream' learns with the package river, which is not installed: pip install 'esault[learn]'"
        ) from None


class _River:
    """A regressor of river."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def predict(self, x: Mapping[str, float]) -> float:
        return float(self._model.predict_one(x))

    def learn(self, x: Mapping[str, float], y: float) -> None:
        self._model.learn_one(x, y)


class _Neighbours:
    """Mean of the nearest samples. Distances are of features in units of their deviation so far."""

    def __init__(self, neighbours: int, window: int, standardised: bool) -> None:
        from river.neighbors import KNNRegressor, LazySearch
        from river.preprocessing import StandardScaler

        self._model = KNNRegressor(n_neighbors=neighbours, engine=LazySearch(window_size=window))
        self._scaler = StandardScaler() if standardised else None

    def predict(self, x: Mapping[str, float]) -> float:
        if self._scaler is not None:
            x = self._scaler.transform_one(x)
        return float(self._model.predict_one(x))

    def learn(self, x: Mapping[str, float], y: float) -> None:
        if self._scaler is not None:
            self._scaler.learn_one(x)
            x = self._scaler.transform_one(x)
        self._model.learn_one(x, y)


def tree(leaf: str = "mean") -> Learner:
    """A Hoeffding tree: splits by variance reduction, looks every 50 samples; `leaf`: what a leaf predicts, as river names it."""
    return _River(_tree(leaf))


def _tree(leaf: str) -> Any:
    from river.tree import HoeffdingTreeRegressor

    return HoeffdingTreeRegressor(grace_period=50, delta=1e-7, tau=0.05, leaf_prediction=leaf)


def bagging(seed: int, members: int = 10, leaf: str = "mean") -> Learner:
    """Online bagging: each of the trees learns each sample Poisson(1) times."""
    from river.ensemble import BaggingRegressor

    return _River(BaggingRegressor(_tree(leaf), n_models=members, seed=seed))


def nearest(neighbours: int = 5, window: int = 1000, standardised: bool = True) -> Learner:
    """Nearest neighbours among the last `window` samples."""
    return _Neighbours(neighbours, window, standardised)


def learners(seed: int, low: float | None = None, high: float | None = None) -> list[Learner]:
    """One of each, untrained; `low`, `high`: the range of the target, where it is known. Raises UsageError without river."""
    check_river()
    return [NaiveBayes(low=low, high=high), tree(), bagging(seed), nearest()]
