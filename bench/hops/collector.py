"""The garbage collector's policies, and what a collection takes: as the data loop sets it, as Python does, and off."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

__all__ = ["POLICIES", "Collections", "apply", "in_place_of_the_engine"]

#: name -> what it is
POLICIES = {
    "engine": "as the data loop does: what was built is frozen, thresholds 50 000, 20, 50",
    "default": "as Python does: nothing is frozen, thresholds 700, 10, 10",
    "off": "no collections",
}
_PYTHON = (700, 10, 10)
_ENGINE = (50_000, 20, 50)


def apply(policy: str) -> None:
    """From now on this policy, in this process."""
    gc.unfreeze()
    gc.collect()
    (gc.disable if policy == "off" else gc.enable)()
    if policy == "engine":
        gc.freeze()
    gc.set_threshold(*(_ENGINE if policy == "engine" else _PYTHON))


class Collections:
    """Counts collections by generation, and their time, within a `with`."""

    def __init__(self) -> None:
        self.counts = [0, 0, 0]
        self.nanoseconds = 0
        self._begun = 0

    def _heard(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._begun = time.perf_counter_ns()
        else:
            self.nanoseconds += time.perf_counter_ns() - self._begun
            self.counts[info["generation"]] += 1

    def __enter__(self) -> Collections:
        gc.callbacks.append(self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._heard)


def in_place_of_the_engine(policy: str, settled: Callable[[], None]) -> None:
    """When the data loop sets its policy the next time, this one holds in its place; `settled` is called then."""
    theirs = gc.set_threshold

    def set_threshold(*thresholds: Any) -> None:
        gc.set_threshold = theirs
        if policy == "engine":
            theirs(*thresholds)
        else:
            apply(policy)
        settled()

    gc.set_threshold = set_threshold  # type: ignore[assignment]
