"""The order in which spouts are read: one that says `after` begins when the spouts before it have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from esault.messages.control import BeginReading

if TYPE_CHECKING:
    from esault.control.run.driver import Driver

__all__ = ["SpoutOrder"]

#: seconds behind which the user is told that a spout waits
PATIENCE = 5.0


class SpoutOrder:
    """The spouts that wait for others. A spout has ended when all that it has read is processed: its roots are acked.

    Sub-units begin to wait when they are made, whenever that is: each is told by itself, and one that takes the place of a dead one too.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._later = [unit for unit in driver.plan.units.values() if unit.after]
        #: sub-units that were told
        self._told: set[int] = set()
        #: what was said to the user
        self._said: set[str] = set()

    def step(self) -> bool:
        """Tell sub-units whose turn has come to read; whether there were any."""
        told = False
        for plan in self._later:
            units = self._driver.units
            before = [name for name in plan.after if not units[name].finishing]
            if before:
                if self._driver.now - (self._driver.running_since or self._driver.now) >= PATIENCE:
                    ends = "has ended" if len(before) == 1 else "have ended"
                    self._say(f"{plan.name} is read when {', '.join(before)} {ends}, and waits")
                continue
            for record in units[plan.name].subs.values():
                if record.started_at is not None and record.incarnation not in self._told:
                    self._told.add(record.incarnation)
                    self._driver.outbox.append((record.incarnation, BeginReading()))
                    told = True
            ended = "has ended" if len(plan.after) == 1 else "have ended"
            self._say(f"{plan.name} is read from now on: {', '.join(plan.after)} {ended}")
        return told

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._driver.notices.append(text)
