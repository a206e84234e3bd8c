"""The way back of a whole run, to its newest complete checkpoint, in new processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from esault.messages.control import Broken, Kill

if TYPE_CHECKING:
    from esault.control.run.driver import Driver

__all__ = ["GoingBack"]


class GoingBack:
    """The ways back of one run; `driver.restores` lists them."""

    def __init__(self, driver: Driver, exactly: bool) -> None:
        self._driver = driver
        self._exactly = exactly

    @property
    def after_death(self) -> bool:
        """Return whether a death has all go back. Before anything has been processed a replacement will do."""
        driver = self._driver
        begun = driver.phase != "building" or driver.completed is not None or bool(driver.restores.all)
        return self._exactly and begun

    def broken(self, message: Broken, now: float) -> None:
        """Go back where a living sub-unit has missed frames."""
        driver = self._driver
        unit = driver.units.get(driver.unit_of.get(message.incarnation, ""))
        if unit is not None and message.incarnation in unit.subs and driver.phase == "running":
            self.begin(f"{unit.name}/{message.incarnation} missed frames ({message.text})", now)

    def begin(self, why: str, now: float, counted: bool = True) -> None:
        """Have all go back to the newest complete checkpoint, in new processes.

        Too many times in a row end the run, where they are `counted`: a restart strategy counts for itself, and hosts come to an end.
        """
        driver = self._driver
        if driver.phase in ("stopping", "ended"):
            return
        driver.checkpoints.abandon()
        failure = driver.restores.begin(driver.checkpoints.newest, why, now, driver.completed, counted)
        if failure is not None:
            driver.fail(failure, now)
            return
        completed = driver.completed
        to = f"checkpoint {completed.number}" if completed is not None else "the beginning"
        driver.notices.append(f"{why}: all go back to {to}")
        driver.epoch += 1
        driver.unforked.why.clear()
        driver.run_checkpoints.go_back()
        driver.commands.sending_again.go_back(completed.number if completed is not None else 0, now)
        for unit in driver.units.values():
            spared = unit.spared.values()
            for incarnation in unit.subs:
                if incarnation not in spared:
                    driver.outbox.append(("keeper", Kill(incarnation)))
        driver.acker_assignment.kill()
        driver.unchaining.go_back(driver.completed, now)
        driver.units = {name: unit.successor(now) for name, unit in driver.units.items()}
        driver.phase = "building"
        driver.start_units(now)

    def tick(self, now: float) -> None:
        """Kill what should be ready by now and is not: another one takes its place."""
        driver = self._driver
        if driver.phase != "building" or not driver.restores.late(now):
            return
        for record in [record for unit in driver.units.values() for record in unit.subs.values()]:
            if record.built is None and record.incarnation not in driver.unforked.why:  # its exit tells
                driver.outbox.append(("keeper", Kill(record.incarnation)))
