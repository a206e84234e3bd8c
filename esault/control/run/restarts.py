"""Restarts after transient errors: a full disk, lost permissions, a service that is away, a process short of descriptors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from esault.control.run.restart_strategy import strategy_of
from esault.messages.control import Failed, Kill

if TYPE_CHECKING:
    from esault.control.run.driver import Driver

__all__ = ["Restarts"]


class Restarts:
    """The restarts of one run: with checkpoints all go back to the last one, without them only what failed is replaced."""

    def __init__(self, driver: Driver, exactly: bool) -> None:
        """Raises UsageError for a strategy that cannot be."""
        self._driver = driver
        self._exactly = exactly
        self._strategy = strategy_of(driver.settings.restart_strategy, exactly)
        #: sub-units and ack servers that failed: when each is restarted, and why
        self._due: dict[int, tuple[float, str]] = {}
        #: restarts so far
        self.count = 0

    def __bool__(self) -> bool:
        return bool(self._due)

    def handle(self, message: Failed, now: float) -> None:
        """Take the failure of a sub-unit or an ack server: plan a restart where it is transient and one is left, else end the run."""
        if not self._plan(message, now):
            self._driver.run_checkpoints.failed(message, now)

    def _plan(self, message: Failed, now: float) -> bool:
        driver, incarnation = self._driver, message.incarnation
        if not message.transient or driver.phase in ("stopping", "ended"):
            return False
        name = self._name(incarnation)
        if name is None:
            return True  # of a life that is over
        if self._exactly and self._due:  # one restart answers all that fails until then
            self._due[incarnation] = next(iter(self._due.values()))
            return True
        wait = self.wait(name, message.text, now)
        if wait is None:
            return False
        self._due[incarnation] = (now + wait, f"{name} failed ({_first_line(message.text)})")
        if self._exactly:
            driver.checkpoints.abandon()  # it does its part no more
        return True

    def _name(self, incarnation: int) -> str | None:
        """Return what the user is told of it; None: it is gone."""
        driver = self._driver
        unit = next((unit for unit in driver.units.values() if incarnation in unit.subs), None)
        if unit is not None:
            return f"{unit.name}/{incarnation}"
        number = driver.acker_assignment.number_of(incarnation)
        return None if number is None else f"ack server {number}"

    def wait(self, name: str, text: str, now: float) -> float | None:
        """Tell of a transient error of `name`, and return the seconds until the restart; None: there is none any more."""
        strategy, driver = self._strategy, self._driver
        wait = strategy.delay(now)
        if wait is None:
            if strategy.most:
                driver.notices.append(f"{name}: no restart is left ({strategy.name}: {strategy.most})")
            return None
        self.count += 1
        completed = driver.completed
        back = "all go back to the beginning" if completed is None else f"all go back to checkpoint {completed.number}"
        driver.notices.append(
            f"{name}: {_first_line(text)}: restart {strategy.attempts} of {strategy.most} in {wait:g} s, "
            f"{back if self._exactly else 'it is replaced'}"
        )
        return wait

    def tick(self, now: float) -> None:
        """Restart what is due."""
        driver = self._driver
        # Those that died meanwhile have been answered already.
        self._due = {incarnation: due for incarnation, due in self._due.items() if self._name(incarnation) is not None}
        for incarnation, (at, why) in list(self._due.items()):
            if now < at:
                continue
            if self._exactly:
                self._due.clear()
                driver.going_back.begin(why, now, counted=False)
                return
            del self._due[incarnation]
            for unit in driver.units.values():
                if incarnation in unit.subs:
                    unit.subs[incarnation].restarting = True
            driver.outbox.append(("keeper", Kill(incarnation)))

    @property
    def waiting(self) -> tuple[int, ...]:
        """Sub-units and ack servers that wait for their restart."""
        return tuple(self._due)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
