"""The load association model of CRAA and its rules: formulas (2) and (5) to (13) of the paper that `craa` names.

Pure functions. Rates are tuples a second, occupancies and sizes tuples, `seconds` the length of a window. The efficiency
coefficient e is 1 throughout (reading R14).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from esault.errors import UsageError

__all__ = [
    "Candidate",
    "check_thresholds",
    "executes",
    "occupancy",
    "out_rate",
    "rate_change",
    "relation",
    "shrink_wanted",
    "slowed",
    "throttle_floor",
    "unit_change",
    "upper_input_rate",
]

#: rates are differences of counts over measured seconds: what differs by less, relatively or in sub-units, is equal
_GUARD = 1e-9


def out_rate(arrivals: float, rate: float, waiting: float, seconds: float, ratio: float = 1.0) -> float:
    """Return what a unit emits in a window that it opens with `waiting` tuples: formula (2).

    The coefficients w1 and w2 choose between what it can process and what there is: the lesser of both. `ratio`: tuples
    emitted for one processed (CR).
    """
    return ratio * (rate if arrivals >= rate else min(rate, arrivals + waiting / seconds))


def occupancy(arrivals: float, rate: float, seconds: float, waiting: float) -> float:
    """Tuples in the buffer at the end of a window, numerator of (9); below 0 and above its size it says by how much (R10)."""
    return (arrivals - rate) * seconds + waiting


def upper_input_rate(rate: float, seconds: float, size: float, delta: float, waiting: float) -> float:
    """UI: the input that leaves the buffer at `delta` of its size, formula (5) over the window's length (R2)."""
    return rate + (size * delta - waiting) / seconds


def rate_change(after: float, size: float, delta: float, seconds: float) -> float:
    """CP: how much faster the unit must be for the buffer to end at `delta` instead of at `after` tuples: formula (10)."""
    return (after - size * delta) / seconds


def unit_change(change: float, one: float, shrink: str = "toward_zero") -> int:
    """CPN: sub-units to add or take away for that change of the rate, each of rate `one`: formula (11).

    The printed floor of a negative number takes away more than the load allows; `toward_zero` does not (R8).
    """
    if change > 0:
        return math.ceil(change / one - _GUARD)
    if change < 0:
        return math.floor(change / one + _GUARD) if shrink == "floor" else -math.floor(-change / one + _GUARD)
    return 0


def relation(change: int, trend: float, tolerance: float = 0.0) -> int:
    """To: 0 where the change goes with the input's trend (IT), 1 growing into a fall, -1 shrinking into a rise: formula (12).

    A trend within `tolerance` of 1 is none.
    """
    if abs(trend - 1) <= max(tolerance, _GUARD) or (change > 0 and trend >= 1) or (change < 0 and trend <= 1):
        return 0
    return 1 if change > 0 else -1


def executes(relation: int, after: float, size: float) -> bool:
    """CJ: whether a change is made, `after` being the occupancy that would follow without it: formula (13)."""
    return relation == 0 or (relation == 1 and after >= size)


def shrink_wanted(arrivals: float, width: int, one: float, rule: str = "printed") -> bool:
    """Return whether the usage is low, alpha being (width - 1) / width; never of a single sub-unit.

    `printed`: what the usage would be with one less is below alpha (line 16 of algorithm 2); `alpha`: the usage is (R7).
    """
    if width <= 1:
        return False
    alpha = (width - 1) / width
    usage = arrivals / (width * one)
    return (usage / alpha if rule == "printed" else usage) < alpha


def throttle_floor(
    rate: float, arrivals: float, waiting: float, size: float, tau: float, seconds: float, planned: float | None = None
) -> float:
    """UP: the lowest rate to which a sender may be slowed, by (6) and (7).

    Its buffer must stay within `tau` of its size in this window, and within its size in the next, in which `arrivals` come and
    it processes at the rate `planned` (as now unless it is given). Each bound gives a largest cut; the lesser meets both (R6).
    """
    planned = rate if planned is None else planned
    now = (size * tau - waiting) / seconds
    then = (size - waiting) / seconds - (arrivals - planned)
    return rate - max(0.0, min(now, then, rate))


class Candidate(NamedTuple):
    """A sender that could be slowed: to which rate, and how much less its receiver would get."""

    unit: str
    rate: float
    less: float


def slowed(needed: float, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Algorithm 1, FAA: the few largest that together spare `needed`; none if all together do not (R5)."""
    if needed <= 0 or needed > sum(c.less for c in candidates):
        return []
    chosen: list[Candidate] = []
    spared = 0.0
    for candidate in sorted(candidates, key=lambda c: -c.less):
        chosen.append(candidate)
        spared += candidate.less
        if spared >= needed - _GUARD:
            break
    return chosen


def check_thresholds(policy: str, period: float, beta: float, gamma: float, delta: float) -> None:
    """Raises UsageError for what cannot be."""
    if period <= 0:
        raise UsageError(f"policy {policy!r}: period must be above 0")
    if not 0 <= gamma < beta <= 1 or not 0 < delta <= 1:
        raise UsageError(
            f"policy {policy!r}: beta={beta:g}, gamma={gamma:g}, delta={delta:g} must be 0 <= gamma < beta <= 1 and 0 < delta <= 1"
        )
