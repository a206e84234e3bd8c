"""How fast a unit may work for a while, divided among its sub-units."""

from __future__ import annotations

import math

from esault.errors import UsageError
from esault.messages.control import Throttle

__all__ = ["UnitThrottle"]


class UnitThrottle:
    """The throttle of one unit; its sub-units share the rate equally, however many they are by then."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._rate = 0.0
        self._until = 0.0

    def set(self, rate: float, seconds: float, now: float) -> None:
        """So many tuples a second, for so many seconds from now, in place of what was said before. Raises UsageError."""
        for what, value, unit in (("rate", rate, "tuples a second"), ("time", seconds, "seconds")):
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value <= 0:
                raise UsageError(
                    f"unit {self._unit!r} cannot be throttled: its {what} is a number of {unit} above 0, not {value!r}"
                )
        self._rate, self._until = float(rate), now + seconds

    def lift(self) -> None:
        """No throttle from now on."""
        self._until = 0.0

    def on(self, now: float) -> bool:
        """Whether one is on."""
        return now < self._until

    def share(self, sub_units: int, now: float) -> Throttle:
        """What each of so many sub-units is told."""
        if not self.on(now):
            return Throttle(0.0, 0.0)
        return Throttle(self._rate / max(1, sub_units), self._until - now)
