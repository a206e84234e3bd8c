"""A limit of how fast a unit may work for a while, divided among its sub-units."""

from __future__ import annotations

import math

from esault.control.units.unit_state import UnitState
from esault.errors import UsageError
from esault.messages.control import Throttle

__all__ = ["UnitThrottle"]


class UnitThrottle:
    """The throttle of one unit; its sub-units share the rate equally, however many they are by then."""

    def __init__(self, state: UnitState) -> None:
        self._state = state
        self._rate = 0.0
        self._until = 0.0

    def begin(self, rate: float, seconds: float, now: float) -> None:
        """Allow so many tuples a second, for so many seconds from now, in place of what held before. Raises UsageError."""
        for what, value, unit in (("rate", rate, "tuples a second"), ("time", seconds, "seconds")):
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value <= 0:
                raise UsageError(
                    f"unit {self._state.name!r} cannot be throttled: its {what} is a number of {unit} above 0, "
                    f"not {value!r}"
                )
        self._rate, self._until = float(rate), now + seconds
        self._tell(now)

    def lift(self, now: float) -> None:
        """Lift the throttle from now on."""
        if self._on(now):
            self._until = 0.0
            self._tell(now)

    def share(self, now: float) -> None:
        """Tell each working sub-unit its share, after one has come or gone."""
        if self._on(now):
            self._tell(now)

    def go_on_from(self, before: UnitThrottle) -> None:
        """Hold for the unit's next life what held in its last one."""
        self._rate, self._until = before._rate, before._until

    def _on(self, now: float) -> bool:
        return now < self._until

    def _tell(self, now: float) -> None:
        subs = self._state.subs.values()
        # Those that leave still work off what they have.
        working = [r for r in subs if r.started_at is not None and not r.joining and not r.stopped]
        for record in working:
            share = Throttle(self._rate / len(working), self._until - now) if self._on(now) else Throttle(0.0, 0.0)
            self._state.tell(record.incarnation, share)
