"""Useful time of units: how long they were not idle, which is a little more than how long they processed."""

from __future__ import annotations

from esault.elasticity.estimators.service_estimate import FEWEST
from esault.elasticity.view import UnitView, UnitWindow

__all__ = ["UsefulTime"]

#: a sub-unit that has so much of what it does in a window waiting, at both ends of it, was never idle
_ALWAYS = 0.1
#: more than this over the time of processing is no overhead, but something that holds the unit up
_MOST = 2.0


class UsefulTime:
    """Time that DS2 calls useful time and Flink busy time: reading, unpacking, processing, packing and sending.

    The engine counts seconds of processing alone. A unit before whose sub-units tuples waited all the time was never idle: then the
    whole window is useful, and what that is over its time of processing is remembered for windows in which it was idle too.
    """

    def __init__(self, always: float = _ALWAYS) -> None:
        """`always`: share of what a unit does in a window that must wait at both ends; 1 is beyond doubt in windows of any length."""
        self._always = always
        self._overheads: dict[str, float] = {}

    def share(self, unit: UnitView) -> float:
        """Of its sub-units' time in the window, 0 .. 1. Each window is to be shown once."""
        window = unit.window
        if window is None or window.seconds <= 0:
            return 0.0
        processing = window.busy / (window.seconds * max(1, unit.width))
        if processing * _MOST >= 1.0 and _never_idle(unit, window, self._always):
            # During a change keys are held, too: that time tells nothing of the next window.
            settled = not unit.changing and (unit.changed_at is None or unit.changed_at <= window.start)
            if settled and window.processed >= FEWEST:  # the slower tuples are, the less of it there is
                self._overheads[unit.name] = max(1.0, 1.0 / processing)
            return 1.0
        return min(1.0, processing * self.overhead(unit.name))

    def overhead(self, unit: str) -> float:
        """Useful time over time of processing, 1 or more, as last seen."""
        return self._overheads.get(unit, 1.0)


def _never_idle(unit: UnitView, window: UnitWindow, always: float) -> bool:
    enough = always * window.processed
    each = enough / max(1, unit.width)
    return 0 < enough <= window.waiting_before and all(sample.backlog >= each for sample in unit.samples)
