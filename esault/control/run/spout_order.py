"""The order in which spouts are read: one that says `after` begins when the spouts before it have ended, or have caught up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from esault.messages.control import BeginReading

if TYPE_CHECKING:
    from esault.control.run.driver import Driver

__all__ = ["SpoutOrder"]

#: seconds behind which the user is told that a spout waits
PATIENCE = 5.0


class SpoutOrder:
    """The spouts that wait for others. A spout has ended when all that it has read is processed: its roots are acked. One without an end
    has caught up when that is so of what was there when it was opened.

    Sub-units begin to wait when they are made, whenever that is: each is told by itself, and one that takes the place of a dead one too.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._later = [unit for unit in driver.plan.units.values() if unit.after]
        #: what was said to the user
        self._said: set[str] = set()

    def _is_over(self, name: str) -> bool:
        unit = self._driver.units[name]
        if unit.finishing or (unit.splits is not None and unit.splits.all_ended):
            return True
        if unit.splits is not None and unit.splits.awaits_reader:
            return False
        return bool(unit.subs) and all(record.ended or record.caught_up for record in unit.subs.values())

    def step(self) -> bool:
        """Tell sub-units whose turn has come to read; whether there were any."""
        told = False
        for plan in self._later:
            before = [name for name in plan.after if not self._is_over(name)]
            if before:
                if self._driver.now - (self._driver.running_since or self._driver.now) >= PATIENCE:
                    self._say(
                        f"{plan.name} waits: {' and '.join(before)} {_are(before)} read before it, and not done yet"
                    )
                continue
            for record in self._driver.units[plan.name].subs.values():
                if record.started_at is not None and not record.told_to_read:
                    record.told_to_read = True
                    self._driver.outbox.append((record.incarnation, BeginReading()))
                    told = True
            self._say(f"{plan.name} is read from now on: {' and '.join(plan.after)} {_are(plan.after)} done")
        return told

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._driver.notices.append(text)


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
