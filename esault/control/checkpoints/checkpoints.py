"""Checkpoints under way: one is complete when all have done their part (docs/explanation/checkpoints.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from esault.control.units.unit import Unit
from esault.errors import CheckpointError
from esault.messages.checkpoint import Abandon, Checkpoint, Completed, NotSnapped, Piece, Snapped

__all__ = ["Checkpoints", "Cut"]

#: seconds that one may be late before nothing else is begun any more
PUT_OFF = 0.25
#: most seconds after one in which no other begins, so that units can change in between: policies look a few times in them
BREATH = 0.6
#: seconds that one waits for a change in subscales: a short one is not held up by it; and how many times as long as the one before took,
#: since each one in the midst of a change writes all keys of who gave some
LATE, PATIENT = 2.0, 4.0
#: seconds between two at most, when they cannot be completed
LONGEST_BACKOFF = 30.0
#: times that the seconds between two are doubled; from a millisecond on this is the longest
MOST_DOUBLED = 15


@dataclass
class Cut:
    """One checkpoint on its way."""

    number: int
    begun_at: float
    #: sub-units that have not said Snapped
    waiting: set[int] = field(default_factory=set)
    #: what they said, by unit
    parts: dict[str, list[Snapped]] = field(default_factory=dict)
    #: which part of its spout a sub-unit reads, or its number in the unit
    places: dict[int, int] = field(default_factory=dict)
    #: sub-units whose ranges are others' already
    leaving: set[int] = field(default_factory=set)
    #: the run ends with it
    last: bool = False
    completed_at: float = 0.0

    @property
    def mixed(self) -> bool:
        """Return whether it goes through the middle of the end of a unit: to go back to it would finish elements twice."""
        return any(
            len({part.finished for part in parts if part.incarnation not in self.leaving}) > 1
            for parts in self.parts.values()
        )


class Checkpoints:
    """The checkpoints of a run: it begins them, gathers their parts, and says when one is complete.

    `keep` is told of a complete one before all sub-units; if it raises CheckpointError, the checkpoint is given up.
    `troubled` is told why one was given up.
    """

    def __init__(
        self,
        every: float,
        patience: float,
        tell: Callable[[int, Any], None],
        keep: Callable[[Cut], None],
        newest: int = 0,
        troubled: Callable[[str], None] = lambda text: None,
        last: int = 0,
    ) -> None:
        """`every`: seconds between two; 0: only when asked for. `patience`: seconds until one is given up."""
        self._every = every
        self._patience = patience
        self._tell = tell
        self._keep = keep
        self._troubled = troubled
        self.newest = newest
        #: numbers are never used twice
        self._last = max(newest, last)
        self.current: Cut | None = None
        #: the newest complete one is being committed for the whole run: no other begins
        self.held = False
        #: the run ends with one: no change goes on before it
        self.ends = False
        self._due: float | None = None
        #: number of one that was asked for
        self._asked = 0
        #: how many were given up since the newest
        self._failed = 0
        #: seconds that the newest complete one took
        self._lasted = 0.0
        #: of the newest complete one: unit -> sub-unit -> its pieces, the base first
        self.chains: dict[str, dict[int, list[Piece]]] = {}
        self._unit_of: dict[int, str] = {}

    @property
    def last_begun(self) -> int:
        """Number of the checkpoint that was begun last, complete or not."""
        return self._last

    def may_begin(self, units: Iterable[Unit]) -> bool:
        """Return whether no change, no death, no end and no commit for the run is being dealt with."""
        if self.held:
            return False
        for unit in units:
            if unit.moving or unit.unsettled:
                return False
            if unit.finishing and not all(record.finished for record in unit.subs.values()):
                return False
            # Who leaves takes part: what its sinks hold is committed with a checkpoint, and not before.
            if not all(record.started_at is not None for record in unit.subs.values()):
                return False
        return True

    def ask(self) -> int:
        """Have one begin as soon as one may, and return the number that it has at least."""
        self._asked = self._last + 1
        return self._asked

    def wanted(self, now: float) -> bool:
        """Return whether one is due that could not begin yet: what would hold it up longer is put off."""
        return self._due is not None and now >= self._due + PUT_OFF and not self.held

    def holds_up(self, behind: int, now: float) -> bool:
        """Return whether a change waits between two subscales: one is on, or one is late and none was complete since `behind`."""
        late = self.newest <= behind and self._is_due(now - max(LATE, PATIENT * self._lasted))
        return self.ends or self.current is not None or late

    def _is_due(self, now: float) -> bool:
        return self._asked > self.newest or (self._due is not None and now >= self._due and not self.held)

    def tick(self, units: Iterable[Unit], now: float) -> None:
        """Begin one that is due, give up one that takes too long."""
        units = list(units)
        if self.current is not None:
            if now > self.current.begun_at + self._patience:
                silent = ", ".join(f"{self._unit_of[i]}/{i}" for i in sorted(self.current.waiting))
                self._trouble(f"{silent} did not do its part within {self._patience:g} s", now)
            return
        if self._every:
            self._due = self._due or now + self._every
        if (self._is_due(now) or any(unit.wants_checkpoint for unit in units)) and self.may_begin(units):
            if self._due is not None:
                self._due = max(self._due + self._every, now)
            self.begin(units, now)

    def begin(self, units: Iterable[Unit], now: float, last: bool = False) -> int:
        """Tell all sub-units of a new checkpoint, and return its number. `last`: nothing is read behind the cut."""
        self._last += 1
        self.current = Cut(self._last, now, last=last)
        for unit in units:
            if unit.splits is not None:
                unit.splits.checkpoint_begun()
            for record in unit.subs.values():
                self.current.waiting.add(record.incarnation)
                self._unit_of[record.incarnation] = unit.name
                self.current.places[record.incarnation] = record.part
                if record.leaving:
                    self.current.leaving.add(record.incarnation)
                # Spouts begin by it, and those whose channels have all ended; to others it says nothing new.
                self._tell(record.incarnation, Checkpoint(self._last, last))
        return self._last

    def not_snapped(self, message: NotSnapped, now: float) -> None:
        """Give up the checkpoint under way if it is this one: a sub-unit cannot do its part."""
        if self.current is not None and message.number == self.current.number:
            self._trouble(message.text, now)

    def _trouble(self, text: str, now: float) -> None:
        """Give up the one that is on. What keeps them from being complete may last: the next ones come ever more slowly."""
        self._failed += 1
        self._asked = 0
        if self._due is not None:
            # A full disk may last for days: the power is bounded, beyond 2**1023 there is no float.
            self._due = now + min(LONGEST_BACKOFF, self._every * 2 ** min(self._failed, MOST_DOUBLED))
        self._troubled(text)
        self.abandon()

    def snapped(self, message: Snapped, now: float) -> None:
        """Note that a sub-unit has done its part, and complete the checkpoint with the last one."""
        cut = self.current
        if cut is None or message.number != cut.number or message.incarnation not in cut.waiting:
            return
        cut.waiting.discard(message.incarnation)
        cut.parts.setdefault(self._unit_of[message.incarnation], []).append(message)
        self._check(cut, now)

    def left(self, incarnation: int, now: float) -> None:
        """Wait no longer for a sub-unit that left in order: its ranges were others' and it sent END before the cut."""
        cut = self.current
        if cut is not None and incarnation in cut.waiting & cut.leaving:
            cut.waiting.discard(incarnation)
            self._check(cut, now)

    def _check(self, cut: Cut, now: float) -> None:
        if not cut.waiting:
            if cut.mixed:
                self.abandon()
                return
            cut.completed_at = now
            before, self.chains = self.chains, self._chain(cut)
            try:
                self._keep(cut)
            except CheckpointError as error:
                self.chains = before
                self._trouble(str(error), now)
                return
            self.current = None
            self._failed = 0
            self._lasted = now - cut.begun_at
            if self._due is not None:
                # Where units are overloaded, barriers wait behind what waits, maybe longer than from one checkpoint to the next. Without
                # time between them one would always be on, and units could not grow. It is as long as the checkpoint was: short ones stay on time.
                self._due = max(self._due, now + min(BREATH, now - cut.begun_at))
            self.newest = cut.number
            for parts in cut.parts.values():
                for part in parts:
                    self._tell(part.incarnation, Completed(cut.number))
            self._unit_of.clear()

    def _chain(self, cut: Cut) -> dict[str, dict[int, list[Piece]]]:
        chains = {}
        for unit, parts in cut.parts.items():
            before = self.chains.get(unit, {})
            now: dict[int, list[Piece]] = {}
            for part in sorted(parts, key=lambda part: part.incarnation):
                # What leaves and has finished has given all it had, or put it out: there is nothing to go on with.
                if part.piece is not None and not (part.finished and part.incarnation in cut.leaving):
                    chain = [] if part.piece.base else before.get(part.incarnation, [])
                    now[part.incarnation] = [*chain, part.piece]
            chains[unit] = now
        return chains

    def abandon(self) -> None:
        """Give up the checkpoint under way, such as when a sub-unit died."""
        cut, self.current = self.current, None
        if cut is not None:
            for incarnation in self._unit_of:
                self._tell(incarnation, Abandon(cut.number))
            self._unit_of.clear()
