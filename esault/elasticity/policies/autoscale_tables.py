"""AUTOSCALE's tables: activity bands, the local and the global decision, and what a decision makes of the degree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "GLOBAL",
    "LOCAL",
    "NOTHING",
    "SCALE_IN",
    "SCALE_OUT",
    "band",
    "global_actions",
    "local_action",
    "new_degree",
]

NOTHING, SCALE_IN, SCALE_OUT = "nothing", "scale-in", "scale-out"

#: which of several actions upstream counts
_RANK = {NOTHING: 0, SCALE_IN: 1, SCALE_OUT: 2}

#: the paper's table 1: (activity, arrivals increase) -> action
LOCAL: Mapping[tuple[str, bool], str] = {
    ("low", False): SCALE_IN,
    ("low", True): NOTHING,
    ("normal", False): NOTHING,
    ("normal", True): NOTHING,
    ("strong", False): NOTHING,
    ("strong", True): SCALE_OUT,
    ("critical", False): SCALE_OUT,
    ("critical", True): SCALE_OUT,
}

#: the paper's table 2: (predominant action upstream, local action) -> action
GLOBAL: Mapping[tuple[str, str], str] = {
    (NOTHING, NOTHING): NOTHING,
    (NOTHING, SCALE_IN): SCALE_IN,
    (NOTHING, SCALE_OUT): SCALE_OUT,
    (SCALE_IN, NOTHING): NOTHING,
    (SCALE_IN, SCALE_IN): SCALE_IN,
    (SCALE_IN, SCALE_OUT): SCALE_OUT,
    (SCALE_OUT, NOTHING): SCALE_OUT,
    (SCALE_OUT, SCALE_IN): NOTHING,
    (SCALE_OUT, SCALE_OUT): SCALE_OUT,
}

#: degree * activity this little above a whole number is that number: 100 * 1.1 takes 110 tasks
_GUARD = 1e-9


def band(activity: float, theta_min: float, theta_max: float) -> str:
    """low, normal, strong or critical; the upper end of each belongs to it."""
    if activity <= theta_min:
        return "low"
    if activity <= theta_max:
        return "normal"
    return "strong" if activity <= 1.0 else "critical"


def local_action(
    activity: float, slope: float, theta_min: float = 0.4, theta_max: float = 0.8, dead_band: float = 0.0
) -> str:
    """Table 1. `slope`: growth of the arrivals of a sub-interval, each second; only above `dead_band` do they increase."""
    return LOCAL[band(activity, theta_min, theta_max), slope > dead_band]


def global_actions(
    order: Iterable[str],
    senders: Mapping[str, Iterable[str]],
    local: Mapping[str, str],
    passes: Callable[[str, str], bool] = lambda _unit, _action: True,
) -> dict[str, str]:
    """Table 2 from the inputs on. `order`: units, senders first; who is not in it (a spout) does nothing.

    Upstream are the direct senders, with what was decided for them, not what they wanted (reading R4). `passes(unit, action)`
    says whether an action of a unit counts for those after it.
    """
    decided: dict[str, str] = {}
    upstream: dict[str, str] = {}
    for unit in order:
        above = max((upstream.get(s, NOTHING) for s in senders.get(unit, ())), key=_RANK.__getitem__, default=NOTHING)
        decided[unit] = GLOBAL[above, local[unit]]
        upstream[unit] = decided[unit] if passes(unit, decided[unit]) else NOTHING
    return decided


def new_degree(action: str, degree: int, activity: float, most: int, least: int = 1) -> int:
    """Tasks after a decision: as many as bring the activity to 1 at most; a scale-out without need is one task more.

    A scale-out at an activity of 1 or less is for the trend, or was inherited from upstream: the formula would shrink there
    (reading R5). Never fewer than `least` (R6), nor more than `most` (R8).
    """
    if action == NOTHING:
        return degree
    if action == SCALE_OUT and activity <= 1.0:
        wanted = degree + 1
    elif math.isinf(activity):
        wanted = most
    else:
        wanted = math.ceil(degree * activity - _GUARD)
    wanted = min(most, wanted)
    return max(degree, wanted) if action == SCALE_OUT else max(least, min(degree, wanted))
