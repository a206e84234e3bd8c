"""Candidate configurations around what the measured load takes, and the capacity rule that chooses while nothing is learnt."""

from __future__ import annotations

import math
from collections.abc import Sequence

from esault.elasticity.policies.orientstream.configuration import Configuration
from esault.elasticity.policies.orientstream.features import WindowState

__all__ = ["by_capacity", "candidates"]

#: shares of their time that sub-units are busy, a candidate for each
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9)
#: beyond it queues only grow: no such configuration is offered to the learners, who may never have seen one
FULL = 0.95


def by_capacity(state: WindowState, rate: float, load: float, catch_up: float) -> Configuration:
    """Every unit as wide as keeps its sub-units busy for the share `load`, with what waits gone in `catch_up` seconds."""
    widths, free = [], state.free
    for name, unit in state.units.items():
        if unit.service is None:
            widths.append((name, unit.width))
            continue
        work = state.demand(name, rate) + unit.waiting * (unit.service or 0.0) / catch_up
        wanted = min(max(math.ceil(work / load - 1e-6), unit.least, 1), unit.most, unit.width + free)
        free -= max(0, wanted - unit.width)
        widths.append((name, wanted))
    return Configuration(tuple(widths))


def candidates(state: WindowState, rate: float, catch_up: float) -> list[Configuration]:
    """Fewest sub-units first; never empty. With the one in force, unless it cannot keep up."""
    found = {by_capacity(state, rate, load, catch_up) for load in LOADS}
    found |= {wider for c in found for wider in _one_wider(state, c)}
    found.add(state.configuration)
    steady = [c for c in found if _fits(state, c, rate)]
    return sorted(steady or {by_capacity(state, rate, LOADS[0], catch_up)}, key=lambda c: (c.parallelism, c.widths))


def _one_wider(state: WindowState, base: Configuration) -> Sequence[Configuration]:
    """The same with one unit wider by one: for units whose latency the load says little about."""
    free = state.free - sum(max(0, n - state.units[name].width) for name, n in base.widths)
    return [
        Configuration(tuple((name, n + (name == wider)) for name, n in base.widths))
        for wider, width in base.widths
        if state.units[wider].service is not None
        and width < state.units[wider].most
        and (free > 0 or width < state.units[wider].width)
    ]


def _fits(state: WindowState, configuration: Configuration, rate: float) -> bool:
    return all(state.demand(name, rate) <= FULL * width for name, width in configuration.widths)
