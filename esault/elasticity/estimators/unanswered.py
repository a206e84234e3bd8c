"""The time for which a unit has answered no probe: all of its sub-units are within a piece of user code that is not over."""

from __future__ import annotations

import math
from collections.abc import Sequence

from esault.elasticity.view import Sample

__all__ = ["Unanswered"]


class Unanswered:
    """Takes what views tell of one unit's probes. A sub-unit that is idle answers each of them at once."""

    def __init__(self) -> None:
        #: sub-unit -> when a probe came back last; before the first when it was started
        self._answered: dict[int, float] = {}

    def observe(self, samples: Sequence[Sample], now: float) -> None:
        """Take in the probes that are new."""
        for gone in self._answered.keys() - {s.sub_unit for s in samples}:
            del self._answered[gone]
        for sample in samples:
            answered = self._answered.get(sample.sub_unit, now - sample.age)
            back = max((p.back for p in sample.probes if p.back is not None), default=answered)
            self._answered[sample.sub_unit] = max(answered, back)

    def longest(self, now: float) -> float:
        """Seconds for which one of the sub-units has not answered; infinite where nothing is known of any."""
        return now - min(self._answered.values(), default=-math.inf)

    def seconds(self, now: float) -> float:
        """Seconds for which none of the sub-units has answered; 0 where nothing is known of any."""
        return max(0.0, now - max(self._answered.values(), default=now))
