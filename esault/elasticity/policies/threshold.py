"""The policy `threshold`: the baseline TA of CRAA's paper, which changes a unit when its buffer is full or empty.

The paper (see `craa`) only names it, "the basic threshold algorithm" with thresholds of 80 % and 20 %. As defined here it acts on the
buffer as it is at the end of a window, takes the input of the next to be that of the last, and sizes a change as CRAA does
by (9) to (11). It does not look ahead, upstream or downstream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from esault.elasticity.action import Action, Rescale
from esault.elasticity.estimators.unit_flow import Flow, Flows
from esault.elasticity.policies.craa_model import check_thresholds, occupancy, rate_change, shrink_wanted, unit_change
from esault.elasticity.view import RunView

__all__ = ["Threshold"]


@dataclass
class Threshold:
    """Parameters as CRAA's: shares of a unit's buffer, and seconds."""

    #: seconds of a window
    period: float = 5.0
    #: a buffer that is full to this share makes its unit grow
    beta: float = 0.8
    #: one that is full to less lets it shrink, if its usage is low
    gamma: float = 0.2
    #: changes aim at this share
    delta: float = 0.7
    #: how a number of sub-units to take away is rounded: toward_zero, or floor, which takes too many
    shrink: str = field(default="toward_zero", metadata={"choices": ("toward_zero", "floor")})
    #: the usage that lets a unit shrink: as CRAA's paper prints it, or usage < alpha
    rule: str = field(default="printed", metadata={"choices": ("printed", "alpha")})
    #: tuples, of units whose inboxes drop nothing; 0: what came of late in half a second, to ask for short waiting
    buffer_default: float = 0.0
    #: what is due at sources that are held back counts as come and waiting at the heads
    count_due: bool = True

    def __post_init__(self) -> None:
        check_thresholds(type(self).__name__.lower(), self.period, self.beta, self.gamma, self.delta)
        self._flows = Flows(self.buffer_default, self.count_due)

    def decide(self, view: RunView) -> Sequence[Action]:
        """Each unit for itself, at the end of a window."""
        slots = view.free_slots
        actions: list[Action] = []
        for flow in self._flows.read(view).values():
            arrivals = self._expected(flow)
            if flow.one is None or flow.size <= 0 or not flow.free:
                continue
            after = occupancy(arrivals, flow.rate, flow.seconds, flow.waiting)
            full = self._judged(flow, after) / flow.size
            low = full < self.gamma and shrink_wanted(arrivals, flow.width, flow.one, self.rule)
            if full < self.beta and not low:
                continue
            change = unit_change(rate_change(after, flow.size, self.delta, flow.seconds), flow.one, self.shrink)
            change = flow.within(change, slots)
            if change:
                slots -= max(0, change)
                actions.append(Rescale(self._reason(flow, arrivals, full, change), flow.width + change, unit=flow.name))
        return actions

    def _expected(self, flow: Flow) -> float:
        """Tuples a second in the next window."""
        return flow.arrivals

    def _judged(self, flow: Flow, after: float) -> float:
        """The occupancy that is held against the thresholds; `after` is that of the next window."""
        return flow.waiting

    def _reason(self, flow: Flow, arrivals: float, full: float, change: int) -> str:
        return (
            f"the buffer of {flow.size:,.0f} is full to {full:.0%}; {flow.width} process {flow.rate:,.0f} tuples/s and "
            f"{arrivals:,.0f}/s come: {flow.width + change}"
        )
