"""Tuples that sources have due and were held back from reading: queues that never fill, as the papers' engines have them.

eSault reads no more than its units can take, so an overload shows at the source and not in the unit's inbox. A policy of a paper whose
engine queues without limit reads too little without this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from esault.elasticity.view import UnitView

__all__ = ["Due", "due"]


class Due(NamedTuple):
    """Tuples that a unit would get of what is due at its sources."""

    #: that became due in the window beyond what was read; below 0 when it was caught up
    arrivals: float = 0.0
    waiting_before: float = 0.0
    waiting: float = 0.0


def due(units: Mapping[str, UnitView], unit: UnitView) -> Due:
    """In the unit's last window. Each tuple that is due counts as many as one that was read brought to this unit.

    Sources that cannot know what is due count nothing.
    """
    if unit.window is None:
        return Due()
    read = before = after = 0.0
    for name in unit.spouts:
        spout = units.get(name)
        if spout is not None and spout.window is not None:
            read += spout.window.arrivals
            if spout.window.lag is not None:
                before += spout.window.lag_before or 0.0
                after += spout.window.lag
    # When nothing at all could be read, one for one is as good as any guess.
    share = unit.window.arrivals / read if read > 0 else 1.0
    return Due(share * (after - before), share * before, share * after)
