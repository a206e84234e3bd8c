"""Sinks that the end of a run waits for: the user is told which, since a server may be away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from esault.messages.status import Status

if TYPE_CHECKING:
    from esault.control.run.driver import Driver

__all__ = ["PATIENCE", "SlowSinks"]

#: seconds in which a sink takes nothing until the user is told
PATIENCE = 5.0


class SlowSinks:
    """The sinks that hooks wait for while a run drains, each told of once."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        #: (sub-unit, sink) -> rows that have landed, and since when they are no more
        self._since: dict[tuple[int, str], tuple[int, float]] = {}
        self._told: set[str] = set()

    def handle(self, message: Status, now: float) -> None:
        """Look at the sinks of a sub-unit, and tell of those that take nothing."""
        driver = self._driver
        if not driver.draining or driver.phase != "running":
            return
        for name in message.landed:
            place = message.incarnation, name
            landed = message.landed[name]
            before, since = self._since.get(place, (-1, now))
            if name not in message.waiting_sinks or landed != before:
                self._since[place] = landed, now
            elif now - since >= PATIENCE and name not in self._told:
                self._told.add(name)
                driver.notices.append(
                    f"the end waits for sink {name!r}, which has taken nothing for {now - since:.0f} s: see that its server "
                    "answers, or end at once (again Ctrl-C, or esault stop --now)"
                )
