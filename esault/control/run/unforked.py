"""Sub-units and ack servers that cannot be forked at present: what the user is told, and which of them are not waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from esault.messages.control import Kill, NotForked

if TYPE_CHECKING:
    from esault.control.run.driver import Driver

__all__ = ["MOST_TRIES_OF_A_NEWCOMER", "Unforked"]

#: tries after which a change is given up: all goes on without its newcomer
MOST_TRIES_OF_A_NEWCOMER = 3
#: seconds after which the same shortage is told again
TELL_AGAIN = 5.0


class Unforked:
    """Those that could not be forked so far, and what follows from it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        #: by incarnation, what is missing
        self.why: dict[int, str] = {}
        self._told: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self.why)

    def handle(self, message: NotForked, now: float) -> None:
        """Tell what is missing. A change whose newcomer cannot be made is given up; so is a run that needs the process."""
        driver, incarnation = self._driver, message.incarnation
        unit = next((unit for unit in driver.units.values() if incarnation in unit.subs), None)
        acker = unit is None and driver.unit_of.get(incarnation) == ""
        if driver.phase in ("stopping", "ended") or (unit is None and not acker):
            return  # it is not wanted any longer
        name = f"ack server {incarnation}" if unit is None else f"{unit.name}/{incarnation}"
        self.why[incarnation] = message.text
        self._tell(message, name, now)
        record = None if unit is None else unit.subs[incarnation]
        if unit is not None and record is not None and record.joining:
            if message.tries >= MOST_TRIES_OF_A_NEWCOMER or not message.again:
                driver.outbox.append(("keeper", Kill(incarnation)))
                record.unforked = message.text
                self.forget(incarnation)
                unit.died(incarnation, message.text, now)
        elif (
            unit is not None
            and (message.tries >= MOST_TRIES_OF_A_NEWCOMER or not message.again)
            and driver.unchaining.drop(unit.name, f"{name} could not be started: {message.text}", now)
        ):
            self.forget(incarnation)
        elif not message.again:
            driver.fail(f"{name} could not be started in {message.tries} tries: {message.text}", now)

    def _tell(self, message: NotForked, name: str, now: float) -> None:
        if message.again and now - self._told.get(name, -TELL_AGAIN) < TELL_AGAIN:
            return
        self._told[name] = now
        follows = f"try {message.tries}, the next one in {message.again:g} s" if message.again else "given up"
        self._driver.notices.append(f"{name} cannot be started: {message.text} ({follows})")

    def forget(self, incarnation: int) -> None:
        """Note that it is there, or not wanted any longer."""
        self.why.pop(incarnation, None)
