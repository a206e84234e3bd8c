"""Sub-units whose data loop says nothing: the user is told where they are, and they are replaced where a timeout is set."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from esault.messages.control import DumpThreads, Kill, ThreadDump

if TYPE_CHECKING:
    from esault.control.run.driver import Driver

__all__ = ["SILENCE", "MissedHeartbeat", "Unresponsive"]

#: seconds without a word from a sub-unit after which it is asked where its threads are, and the user is told
SILENCE = 5.0
#: seconds that its process has to answer that
ANSWER = 1.0
#: seconds within which all first sub-units must have answered that they know each other
WIRED = 60.0
#: of a run that the report has: a bolt of 6 s a tuple misses one for each
MOST = 100


@dataclass
class MissedHeartbeat:
    """One time that a sub-unit said nothing for long."""

    at: float
    unit: str
    incarnation: int
    #: until it was heard again, replaced or gone; None while it lasts
    until: float | None = None
    where: str = ""
    threads: str = ""
    replaced: bool = False
    told: bool = False


class Unresponsive:
    """The times at which each sub-unit was heard last, and what follows from silence."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._timeout = driver.settings.heartbeat_timeout or float("inf")
        self._patience = min(SILENCE, self._timeout / 2)
        self._heard: dict[int, float] = {}
        self._open: dict[int, MissedHeartbeat] = {}
        #: the newest, in order
        self.all: deque[MissedHeartbeat] = deque(maxlen=MOST)
        #: what was told of units, so that it is told once
        self._told: set[tuple[str, str]] = set()
        #: when those that are told of each other must have answered; None: that is over
        self._wired_by: float | None = None

    def handle(self, message: Any, now: float) -> bool:
        """Note that a sub-unit said something; True for a message that is for this alone."""
        if not isinstance(message, ThreadDump):
            self._heard[message.incarnation] = now
            self._end(message.incarnation, now)
            return False
        missed = self._open.get(message.incarnation)  # said beside the data loop: no word of that
        if missed is not None:
            missed.where, missed.threads = message.where, message.text
            self._tell(missed)
        return True

    def gone(self, incarnation: int, now: float) -> None:
        """Note that a sub-unit is gone."""
        self._heard.pop(incarnation, None)
        self._end(incarnation, now)

    def _end(self, incarnation: int, now: float) -> None:
        missed = self._open.pop(incarnation, None)
        if missed is not None:
            missed.until = now

    def tick(self, now: float) -> None:
        """Look for silence. Sub-units that wait for a restart may be silent."""
        if self._driver.phase == "wiring":
            self._wiring(now)
            return
        self._wired_by = None
        if self._driver.phase != "running":
            return
        for incarnation in self._driver.restarts.waiting:
            self._heard[incarnation] = now
            self._end(incarnation, now)
        living = set[int]()
        for unit in self._driver.units.values():
            for incarnation in unit.subs:
                living.add(incarnation)
                heard = self._heard.get(incarnation, now)
                if now - heard > self._patience:
                    self._look(self._open.get(incarnation), unit.name, incarnation, heard, now)
        for incarnation in self._heard.keys() - living:
            self.gone(incarnation, now)

    def _wiring(self, now: float) -> None:
        """Have those replaced that do not answer while all are told of each other: the run has not begun, and waits for them."""
        if self._wired_by is None:
            self._wired_by = now + WIRED
        if now < self._wired_by:
            return
        self._wired_by = now + WIRED
        names = {i: f"{name}/{i}" for name, unit in self._driver.units.items() for i in sorted(unit.unwired())}
        if names:
            said = ", ".join(names.values())
            self._driver.notices.append(
                f"no answer for {WIRED:g} s from {said}, told of each other: ended and replaced"
            )
        self._driver.outbox.extend(("keeper", Kill(incarnation)) for incarnation in names)

    def _look(self, missed: MissedHeartbeat | None, unit: str, incarnation: int, heard: float, now: float) -> None:
        if missed is None:
            missed = self._open[incarnation] = MissedHeartbeat(heard, unit, incarnation)
            self.all.append(missed)
            self._driver.outbox.append((incarnation, DumpThreads(incarnation)))
        elif not missed.told and now - heard > self._patience + ANSWER:
            self._tell(missed)
        if now - heard > self._timeout and not missed.replaced:
            self._tell(missed)
            missed.replaced = True
            self._driver.notices.append(f"{unit}/{incarnation} is ended and replaced: no word for {now - heard:.0f} s")
            self._driver.outbox.append(("keeper", Kill(incarnation)))

    def _tell(self, missed: MissedHeartbeat) -> None:
        if missed.told:
            return
        missed.told = True
        if missed.threads:
            where = f"it is in {missed.where}" if missed.where else "it is in the engine's own code"
        else:
            where = "a frozen process, or code that keeps the interpreter for itself"
        if (missed.unit, where) not in self._told:
            self._told.add((missed.unit, where))
            name = f"{missed.unit}/{missed.incarnation}"
            self._driver.notices.append(f"no word from {name} for {self._patience:g} s: {where}")
