"""The policy `craa`: what a unit will get is what its senders are about to emit, so it is computed and not guessed.

Li, Wei, Li, Wang: Burstiness-Aware Elastic Resource Allocation in Stream Data Processing, Chinese Journal of Computers, 2017,
DOI 10.11897/SP.J.1016.2018.02193. In every window, senders first: the input of the next window from the senders' input,
backlog and rate (2), (3), for heads from a Kalman filter; the buffer that follows (9). Nearly full: senders that do not
change are slowed down for a window (algorithm 1, (5) to (7)). Full, or nearly empty and little used: as many sub-units
as bring the buffer to `delta` (10), (11), unless the input of the window after it, from what is planned upstream, says that
this would soon be undone (12), (13). All changes of a window are made together (algorithm 2).

Readings where the paper is unclear: (5) is a rate (R2); UP, UO and the choice of whom to slow (R3 to R6); the usage test (R7,
`rule`); shrinking rounds towards zero (R8, `shrink`); whole sub-units in (8) (R9); occupancies are not clamped (R10); e is 1
(R14); a slow-down caps the sender's rate in the next window, and ends with it (R20, and of R21 the variant that can be had
live: in the exact one the sender keeps what it has just produced). P_unit is 1 over the measured service time, CR and the
coefficient b are what was counted, forgotten slowly. A head is a bolt that spouts feed; one that bolts feed too adds both.

The formulas assume that what is emitted in one window comes in the next. eSault delivers at once; `delivery=at_once` carries
the model over to that: forecasts of a window go down the topology within it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from esault.elasticity.action import Action, Rescale, Throttle
from esault.elasticity.estimators.kalman_filter import KalmanFilter, head_filter
from esault.elasticity.estimators.unit_flow import Flow, Flows
from esault.elasticity.policies.craa_model import (
    Candidate,
    check_thresholds,
    executes,
    occupancy,
    out_rate,
    rate_change,
    relation,
    shrink_wanted,
    slowed,
    throttle_floor,
    unit_change,
    upper_input_rate,
)
from esault.elasticity.view import RunView
from esault.errors import UsageError

__all__ = ["Craa"]

#: a slow-down by less is none
LEAST_CUT = 1e-9


@dataclass
class Craa:
    """Parameters by the paper's names: shares of a unit's buffer, and seconds."""

    #: seconds of a window (Delta_t)
    period: float = 5.0
    #: a buffer that would be full to this share makes its unit grow
    beta: float = 0.8
    #: one that would be full to less lets it shrink, if its usage is low
    gamma: float = 0.2
    #: changes aim at this share; from here up to beta senders are slowed down
    delta: float = 0.7
    #: a sender that is slowed down may be full to this share
    tau: float = 0.8
    #: slow senders down at all
    feedback: bool = True
    #: look one window further before a change
    judging: bool = True
    #: of heads too, by their filter
    judge_head: bool = True
    #: how a number of sub-units to take away is rounded: toward_zero, or the printed floor, which takes too many
    shrink: str = field(default="toward_zero", metadata={"choices": ("toward_zero", "floor")})
    #: the usage that lets a unit shrink: as printed, or usage < alpha
    rule: str = field(default="printed", metadata={"choices": ("printed", "alpha")})
    #: the Kalman filter of heads: level and trend, or a random walk
    head: str = field(default="trend", metadata={"choices": ("trend", "walk")})
    #: an input that changes by less than this share has no trend; 0 as in the paper, where one tuple flips a decision; try 0.02
    tolerance: float = 0.0
    #: when what is emitted arrives: in the next window, as the formulas have it, or at once
    delivery: str = field(default="next_window", metadata={"choices": ("next_window", "at_once")})
    #: tuples, of units whose inboxes drop nothing; 0: what came of late in half a second, to ask for short waiting
    buffer_default: float = 0.0
    #: what is due at sources that are held back counts as come and waiting at the heads
    count_due: bool = True

    def __post_init__(self) -> None:
        check_thresholds("craa", self.period, self.beta, self.gamma, self.delta)
        if not 0 < self.tau <= 1:
            raise UsageError(f"policy 'craa': tau={self.tau:g} must be above 0, and 1 or less")
        self._flows = Flows(self.buffer_default, self.count_due, self.delivery == "next_window")
        self._heads: dict[str, KalmanFilter] = {}
        #: changes that the judgement cancelled, by unit
        self.avoided: Counter[str] = Counter()
        #: what was slowed down for the window that now ends, tuples a second
        self._caps: dict[str, float] = {}

    def decide(self, view: RunView) -> Sequence[Action]:
        """Algorithm 2, at the end of a window."""
        flows = self._flows.read(view)
        for name, flow in flows.items():
            if flow.head:
                self._heads.setdefault(name, head_filter(self.head)).update(flow.sourced)
        if not flows:
            return ()
        window = _Window(self, flows, self._heads, self._caps, view.free_slots)
        for name in flows:
            window.judge(name)
        self._caps = {t.unit: t.rate for t in window.throttles}
        return [*window.throttles, *window.rescales]


class _Window:
    """The judgement between two windows. What the paper calls n is the one that has ended."""

    def __init__(
        self, policy: Craa, flows: dict[str, Flow], heads: dict[str, KalmanFilter], caps: dict[str, float], slots: int
    ) -> None:
        self._policy = policy
        self._flows = flows
        self._heads = heads
        self._slots = slots
        self.throttles: list[Throttle] = []
        self.rescales: list[Rescale] = []
        #: f(I(n), P(n)) of each unit
        self._sent = {n: _out(f, f.arrivals, min(f.rate, caps.get(n, math.inf)), f.before) for n, f in flows.items()}
        #: P(n+1)
        self._planned = {n: f.rate for n, f in flows.items()}
        #: who grows, shrinks or is slowed down
        self._busy = {n for n, f in flows.items() if not f.free}
        #: I(n+1) and I(n+2)
        self._next: dict[str, float] = {}
        self._later: dict[str, float] = {}

    def _from(self, sender: str, windows: int) -> float:
        """Return what a sender's receivers get of it, so many windows from now, before b."""
        flow, planned = self._flows[sender], self._planned[sender]
        if self._policy.delivery == "next_window":
            return self._sent[sender] if windows == 1 else _out(flow, self._next[sender], planned, flow.waiting)
        if windows == 1:
            return _out(flow, self._next[sender], planned, flow.waiting)
        after = occupancy(self._next[sender], planned, flow.seconds, flow.waiting)
        return _out(flow, self._input(sender, 2), planned, max(0.0, min(flow.size, after)))

    def _input(self, name: str, windows: int) -> float:
        """Formulas (3) and (4)."""
        flow = self._flows[name]
        head = self._heads[name].forecast(windows) if flow.head else 0.0
        return head + sum(flow.share * self._from(s, windows) for s in flow.senders)

    def judge(self, name: str) -> None:
        """One unit, all its senders being judged."""
        flow, policy = self._flows[name], self._policy
        arrivals = self._next[name] = self._input(name, 1)
        if flow.one is None or flow.size <= 0:
            return
        after = occupancy(arrivals, flow.rate, flow.seconds, flow.waiting)
        full = after / flow.size
        if policy.feedback and flow.senders and policy.delta < full < policy.beta:
            self._slow_senders(flow, arrivals, full)
            return
        low = full < policy.gamma and shrink_wanted(arrivals, flow.width, flow.one, policy.rule)
        if not flow.free or (full < policy.beta and not low):
            return
        change = unit_change(rate_change(after, flow.size, policy.delta, flow.seconds), flow.one, policy.shrink)
        change = flow.within(change, self._slots)
        if change == 0:
            return
        if not self._executed(flow, change, arrivals, after):
            policy.avoided[name] += 1
            return
        width = flow.width + change
        self._slots -= max(0, change)
        self._planned[name] = width * flow.one
        self._busy.add(name)
        self.rescales.append(
            Rescale(
                f"{arrivals:,.0f} tuples/s come next, {flow.width} process {flow.rate:,.0f}/s and {flow.waiting:,.0f} wait: the "
                f"buffer of {flow.size:,.0f} would end at {full:.0%}; {width} bring it to {policy.delta:.0%}",
                width,
                unit=name,
            )
        )

    def _executed(self, flow: Flow, change: int, arrivals: float, after: float) -> bool:
        policy = self._policy
        if not policy.judging or not (flow.senders or policy.judge_head):
            return True
        later = self._input(flow.name, 2)
        trend = later / arrivals if arrivals > 0 else math.inf
        return executes(relation(change, trend, policy.tolerance), after, flow.size)

    def _slow_senders(self, flow: Flow, arrivals: float, full: float) -> None:
        """Algorithm 1."""
        policy, seconds = self._policy, flow.seconds
        needed = arrivals - upper_input_rate(flow.rate, seconds, flow.size, policy.delta, flow.waiting)
        candidates = []
        for sender in flow.senders:
            s = self._flows[sender]
            if sender in self._busy or s.one is None or s.size <= 0:
                continue
            floor = throttle_floor(s.rate, self._next[sender], s.waiting, s.size, policy.tau, seconds)
            # It cannot be spared more than it emits (R4).
            cut = min(s.rate - floor, self._from(sender, 1) / s.ratio if s.ratio > 0 else 0.0)
            if cut > LEAST_CUT:
                candidates.append(Candidate(sender, floor, flow.share * s.ratio * cut))
        for chosen in slowed(needed, candidates):
            self._busy.add(chosen.unit)
            self._planned[chosen.unit] = chosen.rate
            reason = (
                f"unit {flow.name!r} would be full to {full:.0%} and gets {needed:,.0f} tuples/s too much; "
                f"held to {chosen.rate:,.0f}/s it gets up to {chosen.less:,.0f} less"
            )
            self.throttles.append(Throttle(reason, chosen.rate, policy.period, unit=chosen.unit))


def _out(flow: Flow, arrivals: float, rate: float, waiting: float) -> float:
    """Formula (2) of a unit; what was measured where its rate is unknown."""
    return flow.emitted if flow.one is None else out_rate(arrivals, rate, waiting, flow.seconds, flow.ratio)
