"""The share of the probes of late that took too long."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from esault.elasticity.view import Sample

__all__ = ["LateProbes"]


class LateProbes:
    """Takes what views tell of one unit's probes. A probe that is out for too long is late before it is back."""

    def __init__(self, max_latency: float, seconds: float) -> None:
        """`max_latency`: seconds that a probe may take; `seconds`: how far back the share reaches."""
        self.max_latency = max_latency
        self._seconds = seconds
        #: (when it was decided, late)
        self._decided: deque[tuple[float, bool]] = deque()
        self._open: dict[int, dict[int, float]] = {}

    def observe(self, samples: Sequence[Sample], now: float) -> None:
        """Take in the probes that are new."""
        for gone in self._open.keys() - {s.sub_unit for s in samples}:
            del self._open[gone]
        for sample in samples:
            waiting = self._open.setdefault(sample.sub_unit, {})
            for probe in sample.probes:
                if probe.back is None:
                    waiting[probe.number] = probe.sent
                elif waiting.pop(probe.number, None) is not None:
                    self._decided.append((now, probe.back - probe.sent > self.max_latency))
            for number in [n for n, sent in waiting.items() if now - sent > self.max_latency]:
                del waiting[number]  # late, however late it will be
                self._decided.append((now, True))
        while self._decided and self._decided[0][0] < now - self._seconds:
            self._decided.popleft()

    def forget(self) -> None:
        """Forget all probes up to now: they say nothing of what comes."""
        self._decided.clear()

    @property
    def share(self) -> float:
        """Of late ones, 0 .. 1."""
        return sum(late for _, late in self._decided) / len(self._decided) if self._decided else 0.0
