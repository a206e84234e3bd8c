"""The policy `kalman`: the baseline KPA of CRAA's paper, a threshold on the buffer that a Kalman filter foretells.

The paper (see `craa`) only names it. As defined here it is `threshold` with the input of the next window from a filter of each
unit's own input, and it acts on the buffer that follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from esault.elasticity.estimators.kalman_filter import KalmanFilter, head_filter
from esault.elasticity.estimators.unit_flow import Flow
from esault.elasticity.policies.threshold import Threshold

__all__ = ["Kalman"]


@dataclass
class Kalman(Threshold):
    """Parameters as of `threshold`, and the filter's model."""

    #: level and trend, or a random walk
    filter: str = field(default="trend", metadata={"choices": ("trend", "walk")})

    def __post_init__(self) -> None:
        super().__post_init__()
        self._filters: dict[str, KalmanFilter] = {}

    def _expected(self, flow: Flow) -> float:
        one = self._filters.setdefault(flow.name, head_filter(self.filter))
        one.update(flow.arrivals)
        return one.forecast(1)

    def _judged(self, flow: Flow, after: float) -> float:
        return after

    def _reason(self, flow: Flow, arrivals: float, full: float, change: int) -> str:
        return (
            f"the buffer of {flow.size:,.0f} would be full to {full:.0%}: {flow.width} process {flow.rate:,.0f} tuples/s and "
            f"{arrivals:,.0f}/s are foretold; {flow.width + change}"
        )
