"""Commands to a run, by hand or by policy: refused with one clear line, or begun."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from esault.control.run.sending_again import SendingAgain
from esault.control.run.state_queries import StateQueries, keys_of
from esault.control.units.unit import Unit
from esault.counters import counted
from esault.errors import UsageError
from esault.messages.control import PeekedState, SendingBegan, SentAgain

if TYPE_CHECKING:
    from esault.control.run.driver import Driver

__all__ = ["Commands"]


#: seconds for which slots are wanted that were asked for by hand
ASKED_FOR = 10.0


class Commands:
    """Commands to a running topology. Nothing is changed where one is refused."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.states = StateQueries(driver.outbox.append)
        self.sending_again = SendingAgain(driver)

    def handle(self, message: Any) -> bool:
        """Take what a sub-unit answers to a command; False if it is no answer."""
        if isinstance(message, PeekedState):
            self.states.answered(message)
        elif isinstance(message, SendingBegan):
            self.sending_again.began(message)
        elif isinstance(message, SentAgain):
            self.sending_again.answered(message)
        else:
            return False
        return True

    def _unit(self, name: str) -> Unit:
        unit = self._driver.units.get(name)
        if unit is None:
            raise UsageError(f"{self._driver.plan.name}: {self._driver.plan.unknown(name)}")
        return unit

    def elastic(self, name: str, more: int = 0) -> Unit:
        """Return the unit for a change that needs so many more slots. Raises UsageError with one clear line."""
        unit = self._unit(name)
        self._check_change(name, more)
        return unit

    def _check_change(self, name: str, more: int) -> None:
        if self._driver.busy:
            raise UsageError(
                f"unit {name!r} cannot be changed now: a checkpoint is being taken or gone back to; try again in a moment"
            )
        if self._driver.phase in ("building", "wiring", "beginning"):
            raise UsageError(
                f"{self._driver.plan.name} starts, or goes back: unit {name!r} cannot be changed yet; try again in a moment"
            )
        if self._driver.phase != "running" or self._driver.draining:
            raise UsageError(f"{self._driver.plan.name} is not running (any more): it cannot be changed")
        free, total = self._driver.places.free(), self._driver.resources.total
        coming = self._driver.places.obtainable
        if free - coming < more <= free:
            self._driver.places.ask(more - free + coming, self._driver.now + ASKED_FOR)
            raise UsageError(
                f"unit {name!r} would need {counted(more, 'more slot')}, and {free - coming} of {total} are free: the others are asked of runs of "
                "lower priority; try again in a moment"
            )
        if more > free:
            budget = self._driver.places.budget
            spent = budget.hourly or (budget.sub_units and free < self._driver.resources.free)
            within = f" within the budget of {budget}" if spent else ""
            remedy = "" if spent else ": merge another unit, or run with more (--slots, or more nodes)"
            raise UsageError(
                f"unit {name!r} would need {counted(more, 'more slot')}, and {free} of {total} are free{within}{remedy}"
            )

    def scale(self, name: str, n: int, now: float, reason: str = "", policy: str = "by hand") -> int | None:
        """Give a unit n sub-units with equal shares; return the change's id, None where it has as many. Raises UsageError.

        One that is chained gets n of its own.
        """
        if name in self._driver.plan.chained:
            self._check_change(name, n)
            begun = self._driver.unchaining.begin(name, n, now, reason, policy)
            self._driver.deliver(now)
            return begun
        unit = self.elastic(name)
        if n >= 1:
            unit.check_change(n)
        change = self.elastic(name, max(0, n - unit.width) * unit.plan.replicas).rescale(n, now, reason, policy)
        self._driver.deliver(now)
        return change

    def split(self, name: str, owner: int, now: float, at: int | None = None) -> int:
        """Give a new sub-unit half of what the owner has, and return the change's id. Raises UsageError."""
        change = self.elastic(name, self._unit(name).plan.replicas).split(owner, now, at)
        self._driver.deliver(now)
        return change

    def merge(self, name: str, owner: int, now: float) -> int:
        """Give the owner's part to its neighbours, and return the change's id. Raises UsageError."""
        change = self.elastic(name).merge(owner, now)
        self._driver.deliver(now)
        return change

    def move(self, name: str, owner: int, now: float) -> int:
        """Put a new sub-unit in the owner's place, and return the change's id. Raises UsageError."""
        change = self.elastic(name, 1).move(owner, now)
        self._driver.deliver(now)
        return change

    def change(self, name: str, kind: str, owner: int | None, now: float) -> int:
        """Split, merge or move one sub-unit (None: the last on the ring), and return the change's id. Raises UsageError."""
        calls = {"split": self.split, "merge": self.merge, "move": self.move}
        if kind not in calls:
            raise UsageError(f"there is no change {kind!r}; there are: {', '.join(calls)}")
        table = self.elastic(name).table
        return calls[kind](name, table.owners()[-1] if owner is None and table is not None else owner or 0, now)

    def query(self, name: str, key: str, prefix: str, limit: int) -> Callable[[], dict[str, Any] | None]:
        """Ask for the state of a key of a unit as it is typed, or of some keys; the answer comes later. Raises UsageError."""
        self._unit(name)
        if self._driver.phase != "running":
            raise UsageError(
                f"{self._driver.plan.name} is not running (any more, or yet): its state cannot be asked for"
            )
        return self.states.ask(lambda: self._driver.units[name], keys_of(key) if key else (), prefix, limit)

    def savepoint(self, name: str) -> Callable[[], dict[str, Any] | None]:
        """Take a checkpoint and keep it under a name; the answer comes later. Raises UsageError."""
        driver = self._driver
        taken = driver.run_checkpoints.savepoints
        if taken is None:
            raise UsageError(f"{driver.plan.name} runs without checkpoints: start it with --checkpoint SECONDS")
        if driver.phase != "running":
            raise UsageError(f"{driver.plan.name} is not running (any more, or yet): try again in a moment")
        return taken.ask(name, driver.checkpoints)

    def throttle(self, name: str, rate: float, seconds: float, now: float) -> None:
        """Have a unit process (a spout: read) `rate` tuples a second at most, all sub-units together, for so many seconds.

        What is not processed waits. Raises UsageError; nothing is changed then.
        """
        unit = self._unit(name)
        if self._driver.phase in ("building", "wiring", "beginning"):
            raise UsageError(
                f"{self._driver.plan.name} starts, or goes back: unit {name!r} cannot be changed yet; try again in a moment"
            )
        if self._driver.phase != "running" or self._driver.draining:
            raise UsageError(f"{self._driver.plan.name} is not running (any more, or yet): it cannot be throttled")
        unit.throttle(rate, seconds, now)
        self._driver.deliver(now)
