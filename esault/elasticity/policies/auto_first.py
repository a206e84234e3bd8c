"""The growth of `auto` in the first moments of a run, before its first window is over: of units that are full beyond doubt."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from esault.elasticity.action import Rescale
from esault.elasticity.estimators.cores import CPU_BOUND, HEAVY, affordable
from esault.elasticity.estimators.service_estimate import FEWEST
from esault.elasticity.first_reports import FirstWindow
from esault.elasticity.policies.auto_unit import FULL
from esault.elasticity.view import RunView

__all__ = ["first_growth"]

#: share of its time that a unit is at user code, at least, for its processor time to be that of tuples
MOSTLY = 0.5


def first_growth(
    view: RunView,
    firsts: Mapping[str, FirstWindow],
    growth: float,
    waiting_growth: float,
    noted: Callable[[str, int, int, float], None],
) -> list[Rescale]:
    """Return what full units are to grow to. `growth`: times as many; `waiting_growth`: of one that waits for something else than the
    processor; `noted`: is told of each unit, its width, what that is to be, and the tuples a second that it got done.

    Nothing is known of rates yet, nor of other units: each gets an equal part of the free slots at most. A budget is divided later, too.
    """
    if view.budget is not None:
        return []
    # How busy hosts are was measured before tuples flowed.
    cores = sum(host.cores for host in view.hosts)
    own = sum(first.needs or 0.0 for first in firsts.values()) / max(1, cores)
    view = replace(view, hosts=tuple(replace(host, cpu=max(host.cpu, min(1.0, own))) for host in view.hosts))
    found: list[Rescale] = []
    for name in view.managed:
        unit, first = view.units[name], firsts.get(name)
        touched = unit.changing or unit.changed_at is not None or unit.died_at is not None
        if first is None or touched or unit.plan.replicas > 1:
            continue
        spouts = [firsts.get(spout) for spout in unit.spouts]
        if not any(spout is not None and spout.window.blind for spout in spouts):
            continue
        n, window, needs = unit.width, first.window, first.needs
        if window.width != n or window.processed < FEWEST:
            continue
        at_work = window.busy / (n * window.seconds)
        # Reports come between two batches: of few large rows none may wait just then, and yet the process was never idle.
        never_idle = needs is not None and needs >= FULL * n and at_work >= MOSTLY
        if not never_idle and (at_work <= FULL or first.least_waiting < n):
            continue
        waits = needs is not None and needs < CPU_BOUND * max(at_work * n, needs)
        most = n + view.free_slots // len(view.managed)
        if unit.plan.max_parallelism is not None:
            most = min(most, unit.plan.max_parallelism)
        wanted = min(most, math.ceil(n * (waiting_growth if waits else growth)))
        if not waits:
            service = max(window.busy, (needs or 0.0) * window.seconds) / window.processed
            # Lighter work needs a core that is free, and how busy the others are is not known so soon.
            wanted = n if service < HEAVY else affordable(view, unit, wanted, service)
        if wanted > n:
            rate = window.processed / window.seconds
            noted(name, n, wanted, rate)
            why = f"it was full for the first {1000 * window.seconds:.0f} ms, and its source cannot tell how much more there is"
            found.append(Rescale(why, wanted, unit=name))
    return found
