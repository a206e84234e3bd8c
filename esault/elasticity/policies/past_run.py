"""The rhythms of sources and the idle times of units that an earlier run has learnt, by name, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esault.elasticity.estimators.idle_times import IdleTimes
from esault.elasticity.estimators.load_history import LoadHistory
from esault.elasticity.estimators.source_forecast import SourceForecast

__all__ = ["PastRun"]


class PastRun:
    """The memory of an earlier run; of none, it is empty."""

    def __init__(self, learnt: Mapping[str, Any] | None = None) -> None:
        """`learnt`: from `PastRun.learnt`. Raises KeyError, TypeError, ValueError for another thing."""
        self._sources: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._idle: dict[str, list[tuple[int, float]]] = {}
        if learnt is None:
            return
        for name, each in learnt["sources"].items():
            LoadHistory.recalled(
                each["history"], 0.0
            )  # one that cannot be read is found now, and not while the run goes on
            self._sources[name] = (float(each["until"]), each["history"])
        for name, ended in learnt["idle"].items():
            self._idle[name] = [(int(rank), float(seconds)) for rank, seconds in ended]

    @staticmethod
    def learnt(sources: Mapping[str, SourceForecast], idle: Mapping[str, IdleTimes]) -> dict[str, Any]:
        """Return it as plain values; times are seconds since the epoch."""
        return {
            "sources": {
                name: {"until": source.until, "history": source.history.snapshot()} for name, source in sources.items()
            },
            "idle": {name: each.snapshot() for name, each in idle.items()},
        }

    def tell(self, name: str, source: SourceForecast, now: float) -> None:
        """Have a source's forecast go on from what is known of it."""
        until, history = self._sources.get(name, (now, None))
        if history is not None and now >= until:
            source.history = LoadHistory.recalled(history, now - until)

    def idle(self, name: str) -> list[tuple[int, float]]:
        """Return the idle times of that unit."""
        return self._idle.get(name, [])
